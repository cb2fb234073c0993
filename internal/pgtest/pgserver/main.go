// Command pgserver starts a PostgreSQL server for tests, writes its address to a file, and stops it
// when it gets a signal or is killed. tools/test.sh passes the address to all packages in
// FERMATA_TEST_POSTGRES.
//
//	pgserver FILE
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fermata-go/fermata/internal/pgtest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pgserver FILE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := pgtest.Serve(ctx, func(address string) error {
		next := os.Args[1] + ".next"
		if err := os.WriteFile(next, []byte(address+"\n"), 0o600); err != nil {
			return err
		}
		return os.Rename(next, os.Args[1]) // readers must not see a part of it
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
