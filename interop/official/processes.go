package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/synadia-io/orbit.go/ntf/backend"
)

// processes runs each server of the tests as a process.
type processes struct {
	program, version string
	options          backend.Options

	mu sync.Mutex
	// The started nodes of each instance; present from its placement to its end.
	nodes map[string][]*node
}

func newProcesses(program, version string, options backend.Options) *processes {
	return &processes{program: program, version: version, options: options, nodes: map[string][]*node{}}
}

func (p *processes) Capabilities() []backend.Capability {
	return []backend.Capability{backend.CapabilityKill, backend.CapabilityPause}
}

func (p *processes) DefaultVersion() string { return p.version }

func (p *processes) Close() error { return nil }

func (p *processes) folder(instance string) string { return filepath.Join(p.options.Dir, instance) }

func (p *processes) Placement(_ context.Context, instance string) (backend.Placement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[instance] = nil
	return placement{p.folder(instance)}, nil
}

func (p *processes) Provision(ctx context.Context, plan *backend.InstancePlan) ([]backend.Node, error) {
	folder := p.folder(plan.ID)
	if err := write(folder, plan.Files); err != nil {
		return nil, err
	}
	started := make([]backend.Node, 0, len(plan.Nodes))
	for _, each := range plan.Nodes {
		node := newNode(p.program, folder, each)
		if err := p.start(ctx, plan.ID, node, each); err != nil {
			p.stop(plan.ID)
			return nil, err
		}
		started = append(started, node)
	}
	return started, nil
}

func (p *processes) start(ctx context.Context, instance string, node *node, plan *backend.NodePlan) error {
	if err := node.Apply(ctx, plan); err != nil {
		return err
	}
	if err := node.Start(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes, isPlaced := p.nodes[instance]
	if !isPlaced {
		node.end()
		return fmt.Errorf("the instance %s was removed while it started", instance)
	}
	p.nodes[instance] = append(nodes, node)
	return nil
}

func (p *processes) stop(instance string) {
	p.mu.Lock()
	nodes := p.nodes[instance]
	p.nodes[instance] = nil
	p.mu.Unlock()
	for _, node := range nodes {
		node.end()
	}
}

func (p *processes) Teardown(_ context.Context, instance string) error {
	p.stop(instance)
	p.mu.Lock()
	delete(p.nodes, instance)
	p.mu.Unlock()
	if p.options.Preserve {
		return nil
	}
	return os.RemoveAll(p.folder(instance))
}

// placement is the folder of an instance. Its ports are those that the operating system offers.
type placement struct{ folder string }

func (p placement) ListenerAddress(_, listener string) (backend.Listener, error) {
	port, err := freePort()
	return backend.Listener{Name: listener, Endpoint: backend.Endpoint{Host: host, Port: port}}, err
}

func (p placement) ProxyAddress(_, kind string) (backend.Endpoint, error) {
	port, err := freePort()
	if kind == "client" || kind == "trace" {
		return backend.Endpoint{Host: host, Port: port}, err
	}
	return backend.Endpoint{Host: "127.0.0.1", Port: port}, err
}

func (p placement) InstanceDir() string { return p.folder }

func (p placement) StoreDir(dir string) string { return filepath.Join(p.folder, dir) }

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func write(folder string, files []backend.File) error {
	for _, file := range files {
		path := filepath.Join(folder, file.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, file.Data, file.Mode); err != nil {
			return err
		}
	}
	return nil
}
