package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// brokenList is a store that cannot list runs.
type brokenList struct {
	store.Store
	err error
}

func (b brokenList) List(context.Context, string, store.RunFilter) ([]store.Run, error) {
	return nil, b.err
}

// An undecryptable value used to be a 503 for the caller, and was not logged.
func TestUnavailable_CauseIsLogged(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) {
		c.Store = brokenList{c.Store, errors.New("disk failure")}
	})
	got := s.call("approver@acme", "GET", "/api/v1/runs", "")
	if got.status != 503 || strings.Contains(got.field("detail").(string), "disk") {
		t.Errorf("the caller gets %+v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "disk failure") || !strings.Contains(log, "operation=list-runs") {
		t.Errorf("the operator reads:\n%s", log)
	}
	if !strings.Contains(s.metrics(), `fermata_errors_total{where="operation"} 1`) {
		t.Error("it is not counted")
	}
}

// A failing store fails every request, and the full disk may be that of the log.
func TestUnavailable_LogIsRateLimited(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) {
		c.Store = brokenList{c.Store, errors.New("disk failure")}
	})
	for range 30 {
		s.call("approver@acme", "GET", "/api/v1/runs", "")
	}
	log := s.log.String()
	if lines := strings.Count(log, "operation=list-runs"); lines == 0 || lines > 10 {
		t.Errorf("the log has %d lines", lines)
	}
	if !strings.Contains(s.metrics(), `fermata_errors_total{where="operation"} 30`) {
		t.Error("not all of them are counted")
	}
}

// A client that disconnects early is not an error of the server.
func TestUnavailable_DisconnectedClientIsNotLogged(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.Store = brokenList{c.Store, context.Canceled} })
	s.call("approver@acme", "GET", "/api/v1/runs", "")
	if log := s.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the operator reads:\n%s", log)
	}
}

// readOnly is a read-only store.
type readOnly struct{ store.Store }

func (readOnly) CheckWritable(context.Context) error {
	return errors.New("this user needs INSERT on audit")
}

// The cause of a failed readiness check used to be invisible. Probes are frequent, so it is logged
// at intervals.
func TestReadyz_CauseIsLoggedAtIntervals(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.Store = readOnly{c.Store} })
	for range 3 {
		if got := s.call("", "GET", "/readyz", ""); got.status != 503 || strings.Contains(got.body, "INSERT") {
			t.Errorf("%+v", got)
		}
	}
	if log := s.log.String(); strings.Count(log, "INSERT on audit") != 1 {
		t.Errorf("the operator reads:\n%s", log)
	}
}
