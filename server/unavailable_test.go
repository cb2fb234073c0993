package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// brokenList is a store that lists no runs.
type brokenList struct {
	store.Store
	err error
}

func (b brokenList) List(context.Context, string, store.RunFilter) ([]store.Run, error) {
	return nil, b.err
}

// A value that no key opens was a 503 for whoever asked, and nothing at all for whoever runs the server.
func TestUnavailable_CauseIsLogged(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) {
		c.Store = brokenList{c.Store, errors.New("the disk is gone")}
	})
	got := s.call("approver@acme", "GET", "/api/v1/runs", "")
	if got.status != 503 || strings.Contains(got.field("detail").(string), "disk") {
		t.Errorf("the caller hears %+v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "the disk is gone") || !strings.Contains(log, "operation=list-runs") {
		t.Errorf("the operator reads:\n%s", log)
	}
	if !strings.Contains(s.metrics(), `fermata_errors_total{where="operation"} 1`) {
		t.Error("it is not counted")
	}
}

// A store that fails does so for everybody who comes, and the disk that is full may be that of the log.
func TestUnavailable_LogIsRateLimited(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) {
		c.Store = brokenList{c.Store, errors.New("the disk is gone")}
	})
	for range 30 {
		s.call("approver@acme", "GET", "/api/v1/runs", "")
	}
	log := s.log.String()
	if lines := strings.Count(log, "operation=list-runs"); lines == 0 || lines > 10 {
		t.Errorf("the operator reads %d lines", lines)
	}
	if !strings.Contains(s.metrics(), `fermata_errors_total{where="operation"} 30`) {
		t.Error("not each of them is counted")
	}
}

// Whoever goes away before they are answered is no trouble of the server's.
func TestUnavailable_DisconnectedClientIsNotLogged(t *testing.T) {
	s := openWith(t, nil, func(c *executor.Config) { c.Store = brokenList{c.Store, context.Canceled} })
	s.call("approver@acme", "GET", "/api/v1/runs", "")
	if log := s.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the operator reads:\n%s", log)
	}
}

// readOnly is a store from which a server can only read.
type readOnly struct{ store.Store }

func (readOnly) CheckWritable(context.Context) error {
	return errors.New("this user needs INSERT on audit")
}

// A replica that never became ready said so to whoever asked, and to nobody why. Health checks ask for ever, so it is not said to each.
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
