package memory_test

import (
	"testing"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/store/storetest"
)

func TestCheckpoints(t *testing.T) {
	storetest.Checkpoints(t, func(*testing.T) store.Checkpoints { return memory.New() })
}

func TestRuns(t *testing.T) {
	storetest.Runs(t, func(*testing.T) store.Runs { return memory.NewRuns(nil) })
}
