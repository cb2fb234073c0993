package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// inboxShown is the time from a decision of one person until the row of another person's list shows
// it, over HTTP: the event, and the fragment that the browser then fetches. The script of the page
// adds 100 ms, in which it waits for further events.
type inboxShown struct {
	Decisions int           `json:"decisions"`
	P50       time.Duration `json:"p50Ns"`
	P99       time.Duration `json:"p99Ns"`
}

// maxShown is the goal for the script's time and the measured time together.
const maxShown = time.Second

// scriptDelay is how long the script of the page waits for further events.
const scriptDelay = 100 * time.Millisecond

func (p inboxPlan) measureShown(ctx context.Context, site http.Handler, key string) (shown inboxShown, err error) {
	served := httptest.NewServer(site)
	defer served.Close()
	c, err := client.New(served.URL, key)
	if err != nil {
		return shown, err
	}
	open, err := c.Requests(ctx, client.Query{State: "pending", Limit: p.repeats})
	if err != nil {
		return shown, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events := make(chan api.QueueEvent, 1000)
	go func() {
		for e, err := range c.QueueEvents(ctx, "") {
			if err != nil {
				close(events)
				return
			}
			events <- e
		}
	}()
	if e, ok := <-events; !ok || e.Type != api.QueueReady {
		return shown, fmt.Errorf("the stream begins with %q", e.Type)
	}
	var times []time.Duration
	for _, r := range open.Items {
		took, err := p.decideAndSee(ctx, c, served.URL, r, events)
		if err != nil {
			return shown, err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	return inboxShown{Decisions: len(times), P50: times[len(times)/2], P99: times[len(times)*99/100]}, nil
}

func (p inboxPlan) decideAndSee(ctx context.Context, c *client.Client, url string, r api.Request, events <-chan api.QueueEvent) (time.Duration, error) {
	began := time.Now()
	decided := make(chan error, 1)
	go func() {
		_, err := c.Decide(ctx, r.ID, api.Decide{ResumeID: "bench-" + r.ID, Answer: json.RawMessage(`"` + reviewVerdict + `"`), Shown: r.Shown})
		decided <- err
	}()
	for e := range events {
		if e.Request != r.ID || e.Type != "decided" {
			continue
		}
		row, err := fetch(ctx, url+"/inbox/rows/"+r.ID)
		if err != nil {
			return 0, err
		}
		if !strings.Contains(row, "closed") {
			return 0, fmt.Errorf("the row of a decided request: %.200s", row)
		}
		return time.Since(began), <-decided
	}
	return 0, fmt.Errorf("the stream has ended")
}

func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return string(body), err
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
