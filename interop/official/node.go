package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/synadia-io/orbit.go/ntf/backend"
)

const (
	// Both only protect against hanging.
	startLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
	retryEvery = 20 * time.Millisecond
	// A server has no signal by which it says that it has reloaded.
	reloadTime = 300 * time.Millisecond
)

// node is a server. Only Status and end may be called beside other methods.
type node struct {
	program, folder string
	plan            backend.NodePlan

	mu      sync.Mutex
	process *process
	isGone  bool
}

// process is a started program.
type process struct {
	command *exec.Cmd
	output  bytes.Buffer
	ended   chan struct{}
}

var errGone = errors.New("the server's instance was removed")

func newNode(program, folder string, plan *backend.NodePlan) *node {
	own := *plan
	own.Files, own.Config = nil, nil
	return &node{program: program, folder: folder, plan: own}
}

func (n *node) Name() string { return n.plan.Name }

func (n *node) Addresses() []backend.Address {
	addresses := make([]backend.Address, 0, len(n.plan.Listeners))
	for _, listener := range n.plan.Listeners {
		inside := backend.Endpoint{Host: "127.0.0.1", Port: listener.Endpoint.Port}
		addresses = append(addresses, backend.Address{Name: listener.Name, Internal: inside, External: listener.Endpoint})
	}
	return addresses
}

// port returns the port of a kind of listener; 0 if there is none.
func (n *node) port(kind string) int {
	for _, listener := range n.plan.Listeners {
		if listener.Name == kind {
			return listener.Endpoint.Port
		}
	}
	return 0
}

func (n *node) Status(context.Context) (backend.NodeStatus, error) {
	process, err := n.current()
	status := backend.NodeStatus{ServerName: n.plan.Name, Cluster: n.plan.Cluster, Version: n.plan.Version}
	if err == nil && process.isRunning() {
		status.Running, status.ClusterPort = true, n.port("cluster")
	}
	return status, err
}

func (n *node) current() (*process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isGone {
		return nil, errGone
	}
	return n.process, nil
}

func (n *node) config() string { return filepath.Join(n.folder, n.plan.Dir, "server.conf") }

// Apply writes files and the configuration.
func (n *node) Apply(_ context.Context, plan *backend.NodePlan) error {
	if _, err := n.current(); err != nil {
		return err
	}
	if plan.Version != n.plan.Version {
		return backend.ErrUnsupported
	}
	if plan.Name != n.plan.Name || plan.Dir != n.plan.Dir || plan.Cluster != n.plan.Cluster {
		return errors.New("a server keeps its name, its folder, and its cluster")
	}
	// A configuration may include a folder without files.
	if err := os.MkdirAll(filepath.Join(n.folder, n.plan.Dir, "snippets"), 0o700); err != nil {
		return err
	}
	if err := write(n.folder, plan.Files); err != nil {
		return err
	}
	return os.WriteFile(n.config(), plan.Config, 0o600)
}

func (n *node) Start(context.Context) error {
	if _, err := n.current(); err != nil {
		return err
	}
	command := exec.Command(n.program, "-c", n.config())
	command.Dir = filepath.Dir(n.config())
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := &process{command: command, ended: make(chan struct{})}
	command.Stdout, command.Stderr = &started.output, &started.output
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		_ = command.Wait()
		close(started.ended)
	}()
	n.mu.Lock()
	n.process = started
	isGone := n.isGone
	n.mu.Unlock()
	if isGone {
		started.kill()
		return errGone
	}
	return started.accepts(n.port("client"))
}

// accepts waits until the process listens.
func (p *process) accepts(port int) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); time.Sleep(retryEvery) {
		if !p.isRunning() {
			if bytes.Contains(p.output.Bytes(), []byte("address already in use")) {
				return fmt.Errorf("%w: %s", backend.ErrListen, p.output.Bytes())
			}
			return fmt.Errorf("the server ended: %s", p.output.Bytes())
		}
		if connection, err := net.Dial("tcp", address); err == nil {
			return connection.Close()
		}
	}
	p.kill()
	return fmt.Errorf("the server does not listen at %s: %s", address, p.output.Bytes())
}

func (p *process) isRunning() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

func (n *node) Stop(context.Context) error {
	process, err := n.current()
	if err != nil || !process.isRunning() {
		return err
	}
	_ = process.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-process.ended:
	case <-time.After(stopLimit):
		process.kill()
		return fmt.Errorf("the server did not stop within %s", stopLimit)
	}
	return nil
}

func (n *node) signal(signal syscall.Signal) error {
	process, err := n.current()
	if err != nil {
		return err
	}
	if !process.isRunning() {
		return errors.New("the server does not run")
	}
	return process.command.Process.Signal(signal)
}

func (n *node) Reload(context.Context) error {
	err := n.signal(syscall.SIGHUP)
	time.Sleep(reloadTime)
	return err
}

func (n *node) Kill(context.Context) error {
	process, err := n.current()
	if err == nil && process.isRunning() {
		process.kill()
	}
	return err
}

func (n *node) Pause(context.Context) error { return n.signal(syscall.SIGSTOP) }

func (n *node) Resume(context.Context) error { return n.signal(syscall.SIGCONT) }

// end stops the server for good.
func (n *node) end() {
	n.mu.Lock()
	n.isGone = true
	process := n.process
	n.mu.Unlock()
	if process.isRunning() {
		process.kill()
	}
}

var (
	_ backend.Backend   = (*processes)(nil)
	_ backend.Placement = placement{}
	_ backend.Node      = (*node)(nil)
)
