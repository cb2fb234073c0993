package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/web"
)

// The scenarios inbox/… read the inbox of an account with many open requests through the API, next
// to the bare query of the store for the same rows.

// inboxPlan defines the precision of the measurement.
type inboxPlan struct{ requests, repeats int }

var (
	inboxFull  = inboxPlan{requests: 5000, repeats: 200}
	inboxQuick = inboxPlan{requests: 60, repeats: 1}
)

// inboxListPage is the page size of the lists.
const inboxListPage = 50

// The goals: how much longer a read may take than its bare query, and the size of a first load.
const (
	maxInboxRatio = 3
	maxFirstLoad  = 100 * kib
)

// measureInbox measures the reads on each database.
func measureInbox(ctx context.Context, c config, r *recorder) error {
	p := inboxFull
	if c.quick {
		p = inboxQuick
	}
	return c.onSelected("inbox", func(on, name string) error { return p.measure(ctx, on, name, r) })
}

func (p inboxPlan) measure(ctx context.Context, on, name string, r *recorder) (err error) {
	st, remove, err := openDatabase(ctx, on, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	sealer, err := newSealer()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	side, err := newExecutorSide(executor.Config{Store: st, Sealer: sealer}, newWorkload(workloadReview), st.Close)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	defer func() { err = errors.Join(err, side.close()) }()
	r.printf("%s: creating %d requests", name, p.requests)
	for n := range p.requests {
		if err := side.start(ctx, fmt.Sprintf("inbox-%05d", n)); err != nil {
			return err
		}
	}
	site, err := openSite(ctx, side)
	if err != nil {
		return err
	}
	return p.compare(ctx, side, site, name, r)
}

// openSite returns the pages in front of the API.
func openSite(ctx context.Context, side *executorSide) (http.Handler, error) {
	s := &benchServer{executorSide: side}
	keys, err := s.keys(ctx, benchAccount, 1)
	if err != nil {
		return nil, err
	}
	api, err := server.New(server.Config{
		Executor: side.executor, Auth: authn.Keys(side.store), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: server.Limits{Rate: unlimited, Burst: unlimited},
	})
	if err != nil {
		return nil, err
	}
	return web.New(web.Config{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+keys[0])
		api.ServeHTTP(w, r)
	})})
}

// compare reads a list, a search, a request and the page. The minimum of the repeats counts.
func (p inboxPlan) compare(ctx context.Context, side *executorSide, handler http.Handler, name string, r *recorder) error {
	open := store.InboxFilter{State: store.InterruptPending, Limit: inboxListPage}
	first, err := side.store.InboxItems(ctx, benchAccount, open)
	if err != nil || len(first) == 0 {
		return errors.Join(err, errors.New("there is no request"))
	}
	ofKind := open
	ofKind.Kind = first[0].Kind
	list := func(filter store.InboxFilter) func() error {
		return func() error {
			items, err := side.store.InboxItems(ctx, benchAccount, filter)
			if err == nil && len(items) != inboxListPage {
				err = fmt.Errorf("%d items", len(items))
			}
			return err
		}
	}
	for _, c := range []struct {
		name, path string
		bare       func() error
	}{
		{"list", fmt.Sprintf("/api/v1/requests?limit=%d", inboxListPage), list(open)},
		{"search", fmt.Sprintf("/api/v1/requests?limit=%d&q=is:mine+kind:%s", inboxListPage, ofKind.Kind), list(ofKind)},
		{"request", "/api/v1/requests/" + first[0].ID, func() error {
			_, err := side.store.InboxItem(ctx, benchAccount, first[0].ID)
			return err
		}},
	} {
		var ours, bare time.Duration
		for range p.repeats {
			theirs, err := timed(c.bare)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			one, err := timed(func() error { return get(ctx, handler, c.path) })
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if ours == 0 || one < ours {
				ours = one
			}
			if bare == 0 || theirs < bare {
				bare = theirs
			}
		}
		m := &scenarioMetrics{name: name + " " + c.name}
		m.millis("ours", ours)
		m.millis("bare query", bare)
		m.add("ratio", float64(ours)/float64(bare), unitTimes).AtMost = maxInboxRatio
		r.add(m)
	}
	bytes, err := firstLoad(ctx, handler, "/inbox")
	m := &scenarioMetrics{name: name + " first load"}
	m.add("over the wire", float64(bytes), unitBytes).AtMost = maxFirstLoad
	r.add(m)
	return err
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

func get(ctx context.Context, handler http.Handler, path string) error {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Errorf("GET %s: %d %.200s", path, w.Code, w.Body)
	}
	return nil
}

var staticPath = regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`)

// firstLoad returns how many bytes a browser receives for a page with its style sheet, scripts and
// icon, as the server sends them.
func firstLoad(ctx context.Context, site http.Handler, path string) (int, error) {
	read := func(path string) (*httptest.ResponseRecorder, error) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			return nil, fmt.Errorf("GET %s: %d", path, w.Code)
		}
		return w, nil
	}
	page, err := read(path)
	if err != nil {
		return 0, err
	}
	bytes := page.Body.Len()
	for _, match := range staticPath.FindAllStringSubmatch(page.Body.String(), -1) {
		if strings.HasSuffix(match[1], ".png") { // installed pages load it
			continue
		}
		file, err := read(match[1])
		if err != nil {
			return 0, err
		}
		bytes += file.Body.Len()
	}
	return bytes, nil
}
