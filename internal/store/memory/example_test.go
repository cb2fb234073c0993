package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

func Example() {
	ctx := context.Background()
	checkpoints := memory.New()
	key := store.Key{Account: "acme", Run: "demo-1"}

	version, err := checkpoints.Save(ctx, key, 0, store.Delta{Put: []store.Part{
		{Name: "run", Data: []byte("waiting")},
		{Name: "node/draft", Data: []byte("a text")},
	}})
	fmt.Println(version, err)

	// The next step changed one part; the other is not written again.
	version, err = checkpoints.Save(ctx, key, version, store.Delta{Put: []store.Part{{Name: "run", Data: []byte("done")}}})
	fmt.Println(version, err)

	// A save that was prepared on version 1 is rejected.
	_, err = checkpoints.Save(ctx, key, 1, store.Delta{Delete: []string{"node/draft"}})
	fmt.Println(errors.Is(err, store.ErrStale))

	checkpoint, err := checkpoints.Load(ctx, key)
	fmt.Printf("%d %s, %s %v\n", checkpoint.Version, checkpoint.Parts["run"], checkpoint.Parts["node/draft"], err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// true
	// 2 done, a text <nil>
}
