// Command official starts the service that the tests of nats.go ask for servers. The servers are processes of any
// program that takes `-c FILE`. It prints the service's URL, and ends with its standard input.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"regexp"

	"github.com/synadia-io/orbit.go/ntf"
	"github.com/synadia-io/orbit.go/ntf/backend"
)

// Both the name under which the service knows these servers, and the host in their URLs.
const (
	backendName = "processes"
	host        = "localhost"
)

func main() {
	program := flag.String("server", "", "the program of the servers")
	flag.Parse()
	if err := serve(*program); err != nil {
		log.Fatal(err)
	}
}

func serve(program string) error {
	version, err := versionOf(program)
	if err != nil {
		return err
	}
	factory := func(_ context.Context, options backend.Options) (backend.Backend, error) {
		return newProcesses(program, version, options), nil
	}
	service, err := ntf.New(context.Background(), ntf.Options{
		AdvertiseHost: host,
		Backend:       backendName,
		Backends:      map[string]backend.Factory{backendName: factory},
	})
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Printf("nats://%s:%d\n", host, service.Port())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// versionOf returns the version of nats-server that a program names last.
func versionOf(program string) (string, error) {
	output, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`\d+\.\d+\.\d+`).FindAllString(string(output), -1)
	if len(found) == 0 {
		return "", fmt.Errorf("%s does not tell its version: %s", program, output)
	}
	return found[len(found)-1], nil
}
