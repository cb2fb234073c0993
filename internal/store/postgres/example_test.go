package postgres_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
)

// Any replica continues where another one has stopped.
func ExampleOpen() {
	ctx := context.Background()
	checkpoints, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{
		Schema:  "approvals",
		Timeout: 10 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer checkpoints.Close()

	key := store.Key{Account: "acme", Run: "demo-1"}
	version, err := checkpoints.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: []byte("waiting")}}})
	fmt.Println(version, err)
	checkpoint, err := checkpoints.Load(ctx, key)
	fmt.Printf("%d %s %v\n", checkpoint.Version, checkpoint.Parts["run"], err)
}
