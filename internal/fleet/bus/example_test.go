package bus_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"perflab/internal/fleet/bus"
)

// A machine joins a hub, and a leader has it do something.
func Example() {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := meet(context.Background(), dir); err != nil {
		fmt.Println(err)
	}
	// Output:
	// leader asks for work
	// done: 16 streams
}

func meet(ctx context.Context, dir string) error {
	hub, err := bus.Start(bus.Options{Dir: filepath.Join(dir, "hub"), Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer hub.Close()
	url, err := hub.Invite(bus.Invite{})
	if err != nil {
		return err
	}

	// On the other machine.
	me, err := bus.Join(ctx, url, filepath.Join(dir, "agent"), "gpu-1")
	if err != nil {
		return err
	}
	agent, err := bus.Dial(ctx, me, bus.DialOptions{})
	if err != nil {
		return err
	}
	defer agent.Close()
	stop, err := agent.Handle(bus.Do(me.ID, "work"), func(m bus.Message) {
		fmt.Println(m.From, "asks for work")
		if err := m.Reply(append([]byte("done: "), m.Data...)); err != nil {
			fmt.Println(err)
		}
	})
	if err != nil {
		return err
	}
	defer stop()

	// Beside the hub.
	leader, err := hub.Dial(ctx, bus.DialOptions{})
	if err != nil {
		return err
	}
	defer leader.Close()
	answer, err := leader.Request(ctx, bus.Do(me.ID, "work"), []byte("16 streams"))
	fmt.Println(string(answer))
	return err
}
