package redis

import (
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/redistest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/store/postgres"
)

func mustOpen(t testing.TB, connString string, config postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), connString, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The suites on the production setup. Each test has its own schema, but Redis is shared: the same
// accounts and runs appear again with other bytes, like after a restored backup.
func TestStore_OverPostgres(t *testing.T) {
	connString, client, opened := pgtest.New(t), mustClient(t, redistest.Start(t).URL()), 0
	storetest.Store(t, func(t *testing.T) store.Store {
		opened++
		return mustNew(t, mustOpen(t, connString, postgres.Config{Schema: fmt.Sprint("suite ", opened)}), client, longTimeout)
	})
}
