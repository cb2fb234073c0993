package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// benchServer is the server in front of an executor, as in cmd/fermata: API keys, strict JSON,
// limits, audit, on a loopback port.
type benchServer struct {
	*executorSide
	http *http.Server
}

// unlimited is a limit that is never reached. All requests come from one principal, so the rate
// limit would dominate; the other limits have their defaults.
const unlimited = 1_000_000_000

// maxOpenRequests is more than an overload leaves open.
const maxOpenRequests = 100_000

// open starts serving, and returns the URL and an API key.
func (s *benchServer) open(ctx context.Context, streams int) (url, key string, err error) {
	keys, err := s.keys(ctx, benchAccount, 1)
	if err != nil {
		return "", "", err
	}
	handler, err := server.New(server.Config{
		Executor: s.executor, Auth: authn.Keys(s.store), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: server.Limits{Rate: unlimited, Burst: unlimited, Streams: streams, OpenRequests: maxOpenRequests},
	})
	if err != nil {
		return "", "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	go s.http.Serve(listener) // it ends with close
	return "http://" + listener.Addr().String(), keys[0], nil
}

// keys creates API keys for an account, each of another principal.
func (s *benchServer) keys(ctx context.Context, account string, count int) (keys []string, err error) {
	for n := range count {
		key, kept, err := authn.NewKey(account, fmt.Sprintf("%s-%d", benchActor, n), authn.RoleAdmin, time.Time{})
		if err == nil {
			err = s.store.AddCredential(ctx, kept, store.Writes{})
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (s *benchServer) close() error {
	if s.http == nil {
		return nil
	}
	if err := s.http.Close(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
