package executor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// leaving is a store whose caller goes away as soon as it has found the rulings.
type leaving struct {
	store.Store
	leave context.CancelFunc
}

func (l *leaving) Papers(ctx context.Context, account string, kind store.PaperKind, f store.PaperFilter) ([]store.Paper, error) {
	papers, err := l.Store.Papers(ctx, account, kind, f)
	if l.leave != nil && kind == "ruling" {
		l.leave()
	}
	return papers, err
}

// Rules may take long for each ruling, and nobody may be there any more to hear what they would have said.
func TestAttack_AReplayEndsWithItsCaller(t *testing.T) {
	s := &leaving{Store: memory.NewRuns(nil)}
	e := cashier(t, s, func(c *executor.Config) { c.Store = s })
	spend(t, e)
	ctx, leave := context.WithCancel(t.Context())
	s.leave = leave
	if past, err := e.Replay(ctx, "acme", candidate(t, spending), time.Now().Add(-time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %+v, %v", past, err)
	}
}
