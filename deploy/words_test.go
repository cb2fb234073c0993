package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/app/config"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
)

// Settings, problems, events and metrics that the pages name are there. A name that is gone sends people looking for it, at night.
func TestPages_NameWhatIsThere(t *testing.T) {
	metrics, err := os.ReadFile("../docs/metrics.md") // made from what is exported
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"whsec_"}
	for _, c := range server.Codes {
		known = append(known, c.Code)
	}
	for _, kind := range []store.EventKind{store.EventEffectBegun, store.EventEffectEnded} {
		known = append(known, string(kind))
	}
	for _, code := range audit.FindingCodes {
		known = append(known, string(code))
	}
	for _, fault := range []audit.Fault{audit.CutOff, audit.BadCheckpoint, audit.WrongHead, audit.WrongHashes} {
		known = append(known, string(fault))
	}
	for _, match := range regexp.MustCompile("`(fermata_[a-z_]+)`").FindAllStringSubmatch(string(metrics), -1) {
		known = append(known, match[1])
	}
	setting := regexp.MustCompile(`^(listen|store|key|auth|runs|audit|limits|webhooks|metrics|log)\.[a-zA-Z.]+$`)
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
	for _, page := range []string{"operations.md", "runbook-stuck-approval.md", "runbook-audit.md"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, match := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
			word := strings.TrimSpace(match[1])
			switch {
			case setting.MatchString(word):
				found++
				if !slices.Contains(config.Keys(), word) {
					t.Errorf("%s: there is no setting %s", page, word)
				}
			case name.MatchString(word):
				found++
				if !slices.Contains(known, word) {
					t.Errorf("%s: there is no %s", page, word)
				}
			}
		}
		if found < 5 {
			t.Errorf("%s names only %d things", page, found)
		}
	}
}
