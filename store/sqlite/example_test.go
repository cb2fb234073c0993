package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

// What one process has saved, the next one finds.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "fermata")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "fermata.db")
	ctx, key := context.Background(), store.Key{Account: "acme", Run: "demo-1"}

	before, err := sqlite.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	version, err := before.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: []byte("waiting")}}})
	fmt.Println(version, err, before.Close())

	after, err := sqlite.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer after.Close()
	checkpoint, err := after.Load(ctx, key)
	fmt.Printf("%d %s %v\n", checkpoint.Version, checkpoint.Parts["run"], err)
	// Output:
	// 1 <nil> <nil>
	// 1 waiting <nil>
}
