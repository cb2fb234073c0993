package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// A test that needs further replicas starts this test binary again with these variables set.
const (
	childDatabase = "FERMATA_POSTGRES_DATABASE"
	childRun      = "FERMATA_POSTGRES_RUN"
)

func TestMain(m *testing.M) {
	connString := os.Getenv(childDatabase)
	if connString == "" {
		os.Exit(pgtest.Main(m))
	}
	if err := runChild(connString, os.Getenv(childRun)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild is a replica that saves its run or, without one, a worker.
func runChild(connString, run string) error {
	s, err := Open(context.Background(), connString, Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	if run == "" {
		return storetest.WorkForever(s, os.Stdout)
	}
	_, err = s.Save(context.Background(), store.Key{Run: run}, 0, putRun(run))
	return err
}
