//go:build unix

package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/store"
)

// maxDescriptions is the number of violations that are reported with all details of their runs.
const maxDescriptions = 3

// report reports violations with details for debugging: first the details, which are long, then the
// violations.
func (w *world) report(found []violation, runs []store.History, more func()) {
	w.t.Helper()
	told, count := make(map[string]bool), make(map[invariant]int)
	for _, v := range found {
		if !told[v.key] && len(told) < maxDescriptions {
			told[v.key] = true
			w.t.Log(w.describeRun(v.key, runs))
		}
	}
	more()
	for _, v := range found {
		if count[v.broken]++; count[v.broken] <= 5 {
			w.t.Error(v)
		}
	}
	for broken, n := range count {
		w.t.Logf("%d times %s", n, broken)
	}
	w.mu.Lock()
	faults := slices.Concat(w.faulty, w.fleet.faults)
	w.mu.Unlock()
	for _, fault := range faults {
		w.t.Error(fault)
	}
	if len(found) > 0 || len(faults) > 0 {
		w.t.Errorf("%d violations; repeat with FERMATA_CHAOS_SEED=%d", len(found), w.seed)
	}
}

// describeRun returns everything that is known of the runs of a state key, in order.
func (w *world) describeRun(key string, runs []store.History) string {
	var text strings.Builder
	fmt.Fprintf(&text, "details of %s (the test began at %s):\n", key, w.began.Format("15:04:05.000000"))
	for _, h := range runs {
		if h.Run.StateKey != key {
			continue
		}
		fmt.Fprintf(&text, "run %s is %s, fence %d, attempts %d, outcome %s\n", h.Run.ID, h.Run.Status, h.Run.Fence, h.Run.Attempts, brief(unseal(h.Run.Outcome)))
		for _, e := range h.Events {
			fmt.Fprintf(&text, "  event %d at %s: %s %s\n", e.Seq, e.At.Format("15:04:05.000000"), e.Kind, e.Interrupt)
		}
		for _, i := range h.Interrupts {
			fmt.Fprintf(&text, "  interrupt %s\n", describe(&i))
		}
		for _, r := range h.Resumes {
			fmt.Fprintf(&text, "  resume %s by %s: %s %s %s\n", r.ID, r.Actor, r.Receipt.Result, r.Receipt.Interrupt, brief(unseal(r.Receipt.Outcome)))
		}
		for _, e := range h.Effects {
			fmt.Fprintf(&text, "  effect %d of %s: %s, key %s, fence %d, from %s to %s, %s %s\n", e.Attempt, e.Interrupt, e.State, e.IdempotencyKey, e.Fence,
				e.Started.Format("15:04:05.000000"), e.Ended.Format("15:04:05.000000"), unseal(e.Receipt), e.Error)
		}
		if lines := w.fleet.notes.of(h.Run.ID); lines != "" {
			fmt.Fprintf(&text, "  logs:\n%s\n", lines)
		}
	}
	text.WriteString(w.eventsOf(key))
	return text.String()
}

// brief returns JSON without irrelevant parts.
func brief(data []byte) string {
	var value any
	if json.Unmarshal(data, &value) != nil {
		return string(data)
	}
	short, err := json.Marshal(withoutSchemas(value))
	if err != nil {
		return string(data)
	}
	return string(short)
}

func withoutSchemas(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range []string{"argsSchema", "answerSchema", "receiptSchema", "interrupt", "address", "digest", "finishReason"} {
			delete(v, name)
		}
		for name, member := range v {
			v[name] = withoutSchemas(member)
		}
	case []any:
		for n, member := range v {
			v[n] = withoutSchemas(member)
		}
	}
	return value
}

// eventsOf returns what people and the sink saw of a state key.
func (w *world) eventsOf(key string) string {
	type line struct {
		at   int64
		text string
	}
	var lines []line
	for _, a := range w.history.all() {
		if a.Key != key {
			continue
		}
		text := a.String()
		if v := a.answer.View; v != nil {
			text += " " + string(v.Status)
			for _, q := range v.Questions {
				text += fmt.Sprintf(" %s=%s%s", q.ID, q.State, q.Verdict)
			}
		}
		lines = append(lines, line{int64(a.sent), text})
	}
	for _, d := range w.sink.log() {
		if d.Action.Order == key {
			lines = append(lines, line{int64(d.at), fmt.Sprintf("%9.3fs EXECUTED %s for %d by replica %d with key %s: %s", d.at.Seconds(), d.Action.Gate, d.Action.Amount, d.Life, d.Key, d.receipt)})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.text + "\n")
	}
	return text.String()
}

// summary returns a table of events.
func (w *world) summary(n *nemesis, found int) string {
	var asked, answered, decided, accepted int
	for _, a := range w.history.all() {
		asked++
		if a.got != 0 {
			answered++
		}
		if a.verb == doDecide && a.got != 0 {
			decided++
		}
		if a.verb == doDecide && a.answer.accepted() {
			accepted++
		}
	}
	calls, _ := w.sink.target.Counts()
	done := len(w.sink.log())
	w.doubts.mu.Lock()
	doubts := len(w.doubts.upTo)
	w.doubts.mu.Unlock()
	return fmt.Sprintf("%.0fs: %s\n    %d requests, %d replies; %d replies to decisions, %d of them accepted; %d orders settled\n    %d external calls, %d effects executed, %d in doubt; %d violations",
		w.now().Seconds(), n, asked, answered, decided, accepted, w.board.settled, calls, done, doubts, found)
}
