package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The quiet tenant's decisions are counted regardless of their result, and a rejection is counted
// and is not a failure.
func TestQuietTenant_CountsRejections(t *testing.T) {
	status := http.StatusServiceUnavailable
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
	}))
	defer front.Close()
	w, err := newRawHTTPClient(front.URL, chatPath, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.closeIdle()
	day := &quietTenant{webClient: &webClient{http: w}, count: 1, keys: []string{"a", "b"}}
	if took, err := day.decide(t.Context()); err != nil || len(took) != 1 || day.refused != 1 || len(day.keys) != 1 {
		t.Errorf("%v, %v; %d refused, %v left", took, err, day.refused, day.keys)
	}
	status = http.StatusInternalServerError
	if _, err := day.decide(t.Context()); err == nil {
		t.Error("a failure is lost")
	}
	if err := day.prepare(t.Context(), 0); err == nil {
		t.Error("runs that were not started were counted as prepared")
	}
}

func TestJudge_NoisyTenant(t *testing.T) {
	turn := overloadRound{Capacity: 10, Good: 5, Refused: 40, Lasted: time.Second}
	good := noisyResult{Database: onSQLite, Alone: pacedSide{P99: 10}, WithNoise: pacedSide{P99: 12}, Ops: 100, Noise: overloadResult{Rounds: []overloadRound{turn}}}
	later, refused, starved, failed, unknown := good, good, good, good, good
	later.WithNoise.P99 = 12.1
	refused.Refused = 1
	turn.Good = 4
	starved.Noise.Rounds = []overloadRound{turn}
	turn.Good, turn.Failed = 5, 1
	failed.Noise.Rounds = []overloadRound{turn}
	unknown.Alone.P99 = 0
	for want, all := range map[string][]noisyResult{"met": {good}, "**NOT met**": {later, refused, starved, failed}, "not judged": {unknown}} {
		for n, r := range all {
			verdicts := webReport{Noisy: []noisyResult{r}}.judge(false)
			if len(verdicts) != 1 || verdicts[0].word() != want || !strings.HasPrefix(verdicts[0].Goal, "http/sqlite/noisy: ") {
				t.Errorf("%d: %+v; want %s", n, verdicts, want)
			}
		}
	}
	if verdicts := (webReport{Noisy: []noisyResult{later}}).judge(true); len(verdicts) != 0 {
		t.Errorf("a quick run was judged: %v", verdicts)
	}
}

// All keys of a tenant send at the same time; together they offer as much as one would. Later
// requests are served.
func TestTenant_OverloadsWithAllKeys(t *testing.T) {
	var crew tenant
	for range noisyKeys {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("-back")) {
				io.WriteString(w, `{"status":"needs_input","interrupts":[{"data":""}]}`)
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "{}")
		}))
		defer front.Close()
		w, err := newRawHTTPClient(front.URL, chatPath, "")
		if err != nil {
			t.Fatal(err)
		}
		crew = append(crew, &webClient{http: w})
	}
	sum := crew.overload(t.Context(), 40, 100*time.Millisecond)
	if sum.Capacity != 40 || sum.Offered != 40*overloadFactor || sum.Refused != 20 || sum.Good+sum.Failed != 0 {
		t.Errorf("%+v", sum)
	}
}
