package fermata_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

var sure = fermata.NewKind[string, bool]("example-sure")

// A helper that retries must not retry an interrupt.
func ExampleIsInterrupt() {
	tries := 0
	persistently := func(work func() error) (err error) {
		for range 3 {
			tries++
			if err = work(); err == nil || fermata.IsInterrupt(err) {
				return err
			}
		}
		return err
	}
	g := graph.New[bool]("retries")
	g.Node("work", func(ctx context.Context, _ bool) (yes bool, err error) {
		err = persistently(func() (err error) {
			if tries == 1 {
				return errors.New("the line was busy")
			}
			yes, err = sure.Ask(ctx, "Shall I?")
			return err
		})
		return yes, err
	})
	g.Edge(graph.Start, "work")
	g.Edge("work", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	_, err = flow.Run(context.Background(), false, graph.WithStore(memory.New()))
	info, _ := fermata.ExtractInterruptInfo(err)
	fmt.Println(len(info.Interrupts), "question after", tries, "tries")
	// Output: 1 question after 2 tries
}
