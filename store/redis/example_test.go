package redis_test

import (
	"context"
	"fmt"
	"log"
	"os"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/redis"
)

type order struct{ Item, Answer string }

var confirm = fermata.NewKind[string, bool]("confirm")

func newFlow() (*graph.Flow[order], error) {
	g := graph.New[order]("order")
	g.Node("confirm", func(ctx context.Context, o order) (order, error) {
		yes, err := confirm.Ask(ctx, "Order "+o.Item+"?")
		o.Answer = fmt.Sprint("confirmed: ", yes)
		return o, err
	})
	g.Edge(graph.Start, "confirm")
	g.Edge("confirm", graph.End)
	return g.Compile()
}

// A run waits in Redis until a process resumes it with the answer.
func ExampleNew() {
	ctx := context.Background()
	options, err := goredis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	client := goredis.NewClient(options)
	defer client.Close()
	checkpoints, err := redis.New(client, redis.Config{})
	if err != nil {
		log.Fatal(err)
	}
	flow, err := newFlow()
	if err != nil {
		log.Fatal(err)
	}
	_, err = flow.Run(ctx, order{Item: "a piano"}, graph.WithStore(checkpoints), graph.WithRun("order-1"))
	if info, waits := fermata.ExtractInterruptInfo(err); waits {
		fmt.Println(info.Interrupts[0].Info, "is stored in Redis")
	}
}
