package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// inboxReads has the rows of one database.
type inboxReads struct {
	Name     string     `json:"name"`
	Database string     `json:"database"`
	Requests int        `json:"requests"`
	Rows     []inboxRow `json:"rows"`
	Shown    inboxShown `json:"shown"`
}

// inboxRow compares one read: the minimum of the times of its repeats.
type inboxRow struct {
	Operation string        `json:"operation"`
	Ours      time.Duration `json:"oursNs"`
	Bare      time.Duration `json:"bareNs"`
	Bytes     int           `json:"bytes"` // of the response
}

func (r inboxRow) ratio() float64 { return float64(r.Ours) / float64(r.Bare) }

func inboxName(database string) string { return "inbox/" + database }

func (p inboxPlan) measure(ctx context.Context, name string, progress io.Writer) (r inboxReads, err error) {
	r = inboxReads{Name: inboxName(name), Requests: p.requests}
	st, version, remove, err := openDatabase(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r.Database = version
	sealer, err := newSealer()
	if err != nil {
		return r, errors.Join(err, st.Close())
	}
	side, err := newExecutorSide(executor.Config{Store: st, Sealer: sealer}, newWorkload(workloadReview), st.Close)
	if err != nil {
		return r, errors.Join(err, st.Close())
	}
	defer func() { err = errors.Join(err, side.close()) }()
	fmt.Fprintf(progress, "%s: asking %d requests\n", r.Name, p.requests)
	for n := range p.requests {
		if err := side.start(ctx, fmt.Sprintf("inbox-%05d", n)); err != nil {
			return r, err
		}
	}
	site, key, err := openSite(ctx, side)
	if err != nil {
		return r, err
	}
	if r.Rows, err = p.compare(ctx, side, site); err != nil {
		return r, err
	}
	r.Shown, err = p.measureShown(ctx, site, key)
	return r, err
}

// openSite returns the pages in front of the API, and an API key of the person who uses them.
func openSite(ctx context.Context, side *executorSide) (site http.Handler, key string, err error) {
	s := &benchServer{executorSide: side}
	keys, err := s.keys(ctx, benchAccount, 1)
	if err != nil {
		return nil, "", err
	}
	api, err := server.New(server.Config{
		Executor: side.executor, Auth: authn.Keys(side.store), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: server.Limits{Rate: unlimited, Burst: unlimited},
	})
	if err != nil {
		return nil, "", err
	}
	site, err = web.New(web.Config{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+keys[0])
		api.ServeHTTP(w, r)
	})})
	return site, keys[0], err
}

// compare reads a list, a search and a request.
func (p inboxPlan) compare(ctx context.Context, side *executorSide, handler http.Handler) (rows []inboxRow, err error) {
	open := store.InboxFilter{State: store.InterruptPending, Limit: inboxListPage}
	first, err := side.store.InboxItems(ctx, benchAccount, open)
	if err != nil || len(first) == 0 {
		return nil, errors.Join(err, errors.New("there is no request"))
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
		{"first load of the page", "/inbox", list(open)},
	} {
		row := inboxRow{Operation: c.name}
		for range p.repeats {
			bare, err := timed(c.bare)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			ours, err := timed(func() error { row.Bytes, err = get(ctx, handler, c.path); return err })
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if row.Ours == 0 || ours < row.Ours {
				row.Ours = ours
			}
			if row.Bare == 0 || bare < row.Bare {
				row.Bare = bare
			}
		}
		if c.path == "/inbox" {
			if row.Bytes, err = firstLoad(ctx, handler, c.path); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// get returns the size of a response.
func get(ctx context.Context, handler http.Handler, path string) (int, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %d %.200s", path, w.Code, w.Body)
	}
	return w.Body.Len(), nil
}

// maxInboxRatio is how much longer a read may take than its bare query.
const maxInboxRatio = 3

// judgeInbox judges the reads. A quick run is not judged.
func judgeInbox(found []inboxReads, quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, r := range found {
		for _, row := range r.Rows {
			if strings.HasPrefix(row.Operation, "first load") { // it makes several reads
				verdicts = append(verdicts, verdict{
					Goal:   fmt.Sprintf("%s: the first load has at most 100 KiB over the wire", r.Name),
					Judged: true, Met: row.Bytes <= 100*kib, Measured: fmt.Sprintf("%.1f KiB", float64(row.Bytes)/kib),
				})
				continue
			}
			verdicts = append(verdicts, verdict{
				Goal:   fmt.Sprintf("%s: %s takes at most 3 × its bare query", r.Name, row.Operation),
				Judged: row.Bare > 0, Met: row.ratio() <= maxInboxRatio, Measured: times(row.ratio(), row.Bare > 0),
			})
		}
		verdicts = append(verdicts, verdict{
			Goal:   fmt.Sprintf("%s: 99 %% of decisions show in the list of another person within a second", r.Name),
			Judged: r.Shown.Decisions > 0, Met: r.Shown.P99+scriptDelay <= maxShown, Measured: millis(float64(r.Shown.P99+scriptDelay)) + " ms",
		})
	}
	return verdicts
}

func (r *report) inbox(out *strings.Builder) {
	if len(r.Inbox) == 0 {
		return
	}
	out.WriteString("\n| inbox | open requests | read | ours | bare query | ratio | bytes |\n|---|--:|---|--:|--:|--:|--:|\n")
	for _, i := range r.Inbox {
		for _, row := range i.Rows {
			fmt.Fprintf(out, "| `%s` %s | %s | %s | %s ms | %s ms | %s | %s |\n", i.Name, i.Database, grouped(i.Requests), row.Operation,
				millis(float64(row.Ours)), millis(float64(row.Bare)), times(row.ratio(), row.Bare > 0), grouped(row.Bytes))
		}
	}
	out.WriteString("\n| inbox | decisions | shown to another person after, p50 / p99 |\n|---|--:|--:|\n")
	for _, i := range r.Inbox {
		fmt.Fprintf(out, "| `%s` | %s | %s / %s ms |\n", i.Name, grouped(i.Shown.Decisions), millis(float64(i.Shown.P50+scriptDelay)), millis(float64(i.Shown.P99+scriptDelay)))
	}
}
