package graph

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLastingContext_OutlivesItsParentForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		c := &saveContext{Context: parent}
		derived, stop := context.WithTimeout(c, time.Hour)
		defer stop()
		cancel()
		time.Sleep(saveTimeout - time.Second)
		if c.Err() != nil || derived.Err() != nil {
			t.Fatal("a save was cancelled with the run's context")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(c.Err(), context.Canceled) || derived.Err() == nil {
			t.Fatal("a save may not hang forever")
		}
		c.close()
	})
}

func TestLastingContext_EndsWithTheSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &saveContext{Context: t.Context()}
		derived, stop := context.WithTimeout(c, time.Hour)
		defer stop()
		c.close()
		synctest.Wait()
		if !errors.Is(c.Err(), context.Canceled) || !errors.Is(derived.Err(), context.Canceled) {
			t.Fatal("resources of a save outlived it")
		}
	})
}
