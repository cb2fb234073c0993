package main

import (
	"strings"
	"testing"
	"time"
)

func TestMetric_Met(t *testing.T) {
	for _, test := range []struct {
		m    metric
		met  bool
		goal string
	}{
		{metric{Value: 20, Unit: unitMillis, AtMost: 20}, true, "at most 20 ms"},
		{metric{Value: 20.1, Unit: unitMillis, AtMost: 20}, false, "at most 20 ms"},
		{metric{Value: 0.8, AtLeast: 0.8}, true, "at least 0.8"},
		{metric{Value: 0.79, AtLeast: 0.8}, false, "at least 0.8"},
		{metric{Value: 0, AtMost: none}, true, "none"},
		{metric{Value: 1, AtMost: none}, false, "none"},
	} {
		if test.m.met() != test.met || test.m.goal() != test.goal {
			t.Errorf("%+v: met %t, goal %q; want %t, %q", test.m, test.m.met(), test.m.goal(), test.met, test.goal)
		}
	}
}

func TestReport_OneTablePerListOfMetrics(t *testing.T) {
	var r report
	for _, name := range []string{"a/1", "a/2"} {
		s := &scenarioMetrics{name: name}
		s.add("done", 1234, "").AtLeast = 2000
		s.millis("took", 1500*time.Microsecond)
		r.Metrics = append(r.Metrics, s.list...)
	}
	r.Metrics = append(r.Metrics, metric{Scenario: "b", Name: "share", Value: 0.5, Unit: unitTimes, AtMost: 1})
	var out strings.Builder
	if err := r.markdown(&out); err != nil {
		t.Fatal(err)
	}
	const want = `
| scenario | done | took |
|---|--:|--:|
| ¬a/1¬ | 1,234 | 1.5 ms |
| ¬a/2¬ | 1,234 | 1.5 ms |

| scenario | share |
|---|--:|
| ¬b¬ | 0.5 × |

| scenario | goal | measured | met |
|---|---|--:|---|
| ¬a/1¬ | done at least 2,000 | 1,234 | **no** |
| ¬a/2¬ | done at least 2,000 | 1,234 | **no** |
| ¬b¬ | share at most 1 × | 0.5 × | yes |
`
	if _, got, _ := strings.Cut(out.String(), "\n"); got != strings.ReplaceAll(want, "¬", "`") {
		t.Errorf("got %s", got)
	}
}

func TestPercentile(t *testing.T) {
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(i+1))
	}
	if p50, p99 := percentile(values, 50), percentile(values, 99); p50 != 100 || p99 != 198 {
		t.Errorf("p50 is %d, p99 %d; want 100 and 198", p50, p99)
	}
	if percentile(values[:1], 99) != 1 || percentile(nil, 99) != 0 {
		t.Error("one value is its own percentile, and none has none")
	}
	if median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 || median(nil) != 0 {
		t.Error("the median is in the middle")
	}
}
