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

	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
)

// benchServer is the server before an executor, as cmd/fermata has it: API keys, strict JSON, limits, audit, on a port of the loopback device.
type benchServer struct {
	*executorSide
	http *http.Server
}

// unlimited is a limit that nobody reaches. How many requests one principal may send is not asked here, and all come from one; what the server
// does when it is asked for more than it can do is up to its other limits, which are the defaults.
const unlimited = 1_000_000_000

// maxOpenRequests is more than are left open when the server was asked for too much.
const maxOpenRequests = 100_000

// open begins to serve, and returns where, and the key to come in with.
func (s *benchServer) open(ctx context.Context, streams int) (url, key string, err error) {
	keys, err := s.keys(ctx, benchAccount, 1)
	if err != nil {
		return "", "", err
	}
	handler, err := server.New(server.Config{
		Executor: s.executor, Auth: server.Keys(s.store), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
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

// keys makes some for an account, each of somebody else.
func (s *benchServer) keys(ctx context.Context, account string, count int) (keys []string, err error) {
	for n := range count {
		key, kept, err := server.NewKey(account, fmt.Sprintf("%s-%d", benchActor, n), server.RoleAdmin, time.Time{})
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
