package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// report is the result of a run of this program.
type report struct {
	Machine     machine          `json:"machine"`
	Rounds      int              `json:"rounds"`
	Results     []result         `json:"results"`
	Hold        holdReport       `json:"held"`
	Desk        deskReport       `json:"desk"`
	Web         webReport        `json:"web"`
	Parked      []parkedResult   `json:"parked,omitempty"`
	Recovery    []recoveryResult `json:"again,omitempty"`
	History     []historyResult  `json:"history,omitempty"`
	Inbox       []inboxReads     `json:"inbox,omitempty"`
	Talk        []talkResult     `json:"dialog,omitempty"`
	Slack       []slackResult    `json:"slack,omitempty"`
	SlackOutage []slackOutage    `json:"slackOutage,omitempty"`
	Goals       []verdict        `json:"goals"`
}

// machine describes the machine and the versions.
type machine struct {
	Date  time.Time `json:"date"`
	Go    string    `json:"go"`
	OS    string    `json:"os"`
	CPU   string    `json:"cpu"`
	Cores int       `json:"cores"`
	Load  string    `json:"load"`
	Eino  string    `json:"eino"`
	Sonic string    `json:"sonic"`
}

func describe(now time.Time) machine {
	return machine{
		Date: now, Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuModel(), Cores: runtime.NumCPU(),
		Load: loadAverage(), Eino: moduleVersion("github.com/cloudwego/eino"), Sonic: moduleVersion("github.com/bytedance/sonic"),
	}
}

const unknown = "unknown"

func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(data)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return unknown
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return unknown
}

// markdown writes the report as Markdown.
func (r *report) markdown(w io.Writer) error {
	out := &strings.Builder{}
	m := r.Machine
	fmt.Fprintf(out, "%s · %s %s · %s, %d cores · load at the start %s · Eino %s (sonic %s) · %d rounds\n\n",
		m.Date.Format("2006-01-02 15:04 MST"), m.Go, m.OS, m.CPU, m.Cores, m.Load, m.Eino, m.Sonic, r.Rounds)
	r.comparison(out)
	r.alone(out)
	r.Hold.markdown(out)
	r.Desk.markdown(out)
	r.Web.markdown(out)
	r.parked(out)
	r.recovery(out)
	r.history(out)
	r.slack(out)
	r.inbox(out)
	r.talk(out)
	r.goals(out)
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *report) comparison(out *strings.Builder) {
	var notes []string
	header := false
	for _, row := range r.Results {
		if row.Eino == nil {
			continue
		}
		if !header {
			out.WriteString("| scenario | ours CPU/op | Eino CPU/op | ratio | ours allocs | Eino allocs | ratio | ours bytes stored | Eino bytes stored |\n")
			out.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
			header = true
		}
		title := row.title()
		if row.Unequal != "" {
			title += " " + noteMark(&notes, row.Unequal)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", title,
			duration(row.Ours.Best.CPU), duration(row.Eino.Best.CPU), fraction(row.cpuRatio()),
			count(row.Ours.Best.Allocs), count(row.Eino.Best.Allocs), fraction(row.allocRatio()),
			bytesStored(row.Ours.Stored), bytesStored(row.Eino.Stored))
	}
	for i, note := range notes {
		fmt.Fprintf(out, "\n%s %s.\n", noteSymbol(i), note)
	}
}

func (r *report) alone(out *strings.Builder) {
	header := false
	for _, row := range r.Results {
		if row.Eino != nil {
			continue
		}
		if !header {
			out.WriteString("\n| ours alone | CPU/op | wall/op | allocs | bytes allocated | bytes stored |\n|---|--:|--:|--:|--:|--:|\n")
			header = true
		}
		best := row.Ours.Best
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", row.title(),
			duration(best.CPU), duration(best.Wall), count(best.Allocs), count(best.Bytes), bytesStored(row.Ours.Stored))
	}
}

// goals writes the goals, without those of scenarios that were not selected.
func (r *report) goals(out *strings.Builder) {
	out.WriteString("\n| goal | measured | verdict |\n|---|--:|---|\n")
	left := 0
	for _, v := range r.Goals {
		if !v.Judged {
			left++
			continue
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", v.Goal, v.Measured, v.word())
	}
	if left > 0 {
		fmt.Fprintf(out, "\n%d goals were not judged: their scenarios were not measured.\n", left)
	}
}

func (r result) title() string { return "`" + r.Name + "` " + r.Description }

// noteMark returns the mark of a note, which is added to the notes if it is new.
func noteMark(notes *[]string, note string) string {
	for i, known := range *notes {
		if known == note {
			return noteSymbol(i)
		}
	}
	*notes = append(*notes, note)
	return noteSymbol(len(*notes) - 1)
}

func noteSymbol(i int) string { return strings.Repeat("†", i+1) }

// noValue marks a missing measurement.
const noValue = "–"

// fraction formats a ratio for comparison: 1/12 is better than 1/3, ×2 is worse than equal.
func fraction(ratio float64, known bool) string {
	switch {
	case !known:
		return noValue
	case ratio < 1:
		return fmt.Sprintf("1/%.1f", 1/ratio)
	}
	return fmt.Sprintf("×%.1f", ratio)
}

func duration(ns float64) string {
	switch {
	case ns == 0:
		return noValue
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}

func count(n float64) string { return bytesStored(int(n + 0.5)) }

func bytesStored(n int) string {
	if n == 0 {
		return noValue
	}
	return grouped(n)
}

// grouped formats a number with thousands separators.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
