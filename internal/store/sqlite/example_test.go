package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// A second process finds what the first one has saved.
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

// A run raises an interrupt and waits. After an approval any worker continues, in this or another
// process.
func ExampleStore_Claim() {
	dir, err := os.MkdirTemp("", "fermata")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	book, err := sqlite.Open(filepath.Join(dir, "fermata.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer book.Close()
	ctx := context.Background()

	lease, err := book.Create(ctx, store.NewRun{Account: "acme", ID: "run-1", StateKey: "refund-4711", Owner: "host-a", Lease: time.Minute})
	fmt.Println("created, fence", lease.Fence, err)
	status, err := book.EndExecution(ctx, lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: []store.NewInterrupt{{ID: "int_1", ShownDigest: "sha256:s", ActionDigest: "sha256:a"}}})
	fmt.Println(status, err)

	receipt, err := book.Decide(ctx, store.Decision{
		Account: "acme", Run: "run-1", ResumeID: "click-1", Actor: "ann", BodyDigest: "sha256:b",
		Answers: []store.Answer{{Interrupt: "int_1", Verdict: store.VerdictApprove, ShownDigest: "sha256:s", ApprovedDigest: "sha256:a"}},
	})
	fmt.Println(receipt.Result, err)

	work, err := book.Claim(ctx, store.Claim{Owner: "host-b", Lease: time.Minute})
	fmt.Println("claimed, fence", work.Lease.Fence, work.Decided[0].Verdict, err)
	_, begun, err := book.BeginEffect(ctx, work.Lease, store.NewEffect{Interrupt: "int_1", Attempt: 1, ActionDigest: "sha256:a"})
	fmt.Println("may act:", begun, err)
	_, _, err = book.BeginEffect(ctx, work.Lease, store.NewEffect{Interrupt: "int_1", Attempt: 2, ActionDigest: "sha256:other"})
	fmt.Println(err)
	// Output:
	// created, fence 1 <nil>
	// waiting <nil>
	// accepted <nil>
	// claimed, fence 2 approve <nil>
	// may act: true <nil>
	// store: effect is not approved
}
