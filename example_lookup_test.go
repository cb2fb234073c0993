package fermata_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/memory"
)

// bank does not detect duplicate transfers, but supports lookup by reference and rejects calls with
// a lower fence than it has seen with that reference.
type bank struct {
	paid   map[string]string
	fences map[string]int
}

func (b *bank) pay(reference string, fence, cents int) (string, error) {
	if fence < b.fences[reference] {
		return "", errors.New("refused: there was a later try")
	}
	b.fences[reference] = fence
	b.paid[reference] = fmt.Sprintf("%d cents paid", cents)
	return "", errors.New("the line went dead") // before the answer arrived
}

func (b *bank) find(reference string, fence int) (string, bool) {
	b.fences[reference] = max(b.fences[reference], fence)
	receipt, found := b.paid[reference]
	return receipt, found
}

// A transfer whose answer was lost is looked up at the bank: no person is asked, and nothing is
// paid twice.
func ExampleLookup() {
	b := &bank{paid: make(map[string]string), fences: make(map[string]int)}
	g := graph.New[string]("transfers")
	g.Node("pay", func(ctx context.Context, _ string) (string, error) {
		approved, err := fermata.Approve(ctx, fermata.Action[int]{Name: "transfer", Args: 4200})
		if err != nil {
			return "", err
		}
		return fermata.Effect(ctx, approved, func(ctx context.Context, cents int, key string) (string, error) {
			return b.pay(key, fermata.Fence(ctx), cents)
		}, fermata.Fenced(), fermata.Lookup(func(ctx context.Context, key string) (string, bool, error) {
			receipt, found := b.find(key, fermata.Fence(ctx))
			return receipt, found, nil
		}))
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		panic(err)
	}
	ctx, st := context.Background(), graph.WithStore(memory.New())
	_, err = flow.Run(ctx, "", st, graph.WithRun("t-1"))
	info, _ := fermata.ExtractInterruptInfo(err)
	out, err := flow.Resume(ctx, "t-1", st, graph.Answer(info.Interrupts[0].ID, fermata.Yes("ann")))
	fmt.Println(out, err, len(b.paid))
	// Output:
	// 4200 cents paid <nil> 1
}
