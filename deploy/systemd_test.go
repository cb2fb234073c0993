package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// unit reads a unit file: section and key to values.
func unit(t *testing.T, file string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				t.Fatalf("%s: %q", file, line)
			}
			all[section+"."+name] = append(all[section+"."+name], value)
		}
	}
	return all
}

// stopTimeout is how long a process may need after its drain if the database does not answer.
const stopTimeout = 20 * time.Second

func TestSystemd_UnitFitsTheProgram(t *testing.T) {
	u := unit(t, "systemd/fermata.service")
	settings := loaded(t, "systemd/fermata.yaml", nil)
	state := "/var/lib/" + u["Service.StateDirectory"][0]
	if settings.Store.URL.Reveal() != "sqlite:"+state+"/fermata.db" || u["Service.WorkingDirectory"][0] != state {
		t.Errorf("the store is not in %s, the only writable directory", state)
	}
	timeout, err := time.ParseDuration(u["Service.TimeoutStopSec"][0])
	if err != nil || timeout < settings.Listen.DrainTimeout+stopTimeout {
		t.Errorf("the stop timeout of %s is too short for a drain of %s, %v", timeout, settings.Listen.DrainTimeout, err)
	}
	words := strings.Fields(u["Service.ExecStart"][0])
	if words[0] != "/usr/local/bin/fermata" || !slices.Contains(words, "/etc/fermata/fermata.yaml") {
		t.Errorf("it starts %v", words)
	}
	if hidden := u["Service.ProcSubset"]; hidden != nil {
		t.Errorf("ProcSubset is %v: Go cannot read net.core.somaxconn, and limits the listen backlog to 128, regardless of limits.streams", hidden)
	}
	users, err := os.ReadFile("systemd/fermata.sysusers")
	if err != nil || !strings.HasPrefix(string(users), "u "+u["Service.User"][0]+" ") {
		t.Errorf("the user %v is not created: %s, %v", u["Service.User"], users, err)
	}
}

// The command runs with the configuration of the unit, on files of this machine.
func TestSystemd_CommandWorks(t *testing.T) {
	u := unit(t, "systemd/fermata.service")
	dir := t.TempDir()
	text, err := os.ReadFile("systemd/fermata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	places := strings.NewReplacer("/etc/fermata", dir, "/var/lib/fermata", dir, "127.0.0.1:8080", "127.0.0.1:0")
	write(t, dir, "fermata.yaml", places.Replace(string(text)))
	p := launch(t, []string{"FERMATA_LOG_FORMAT=json", "FERMATA_METRICS_ADDR=off"}, strings.Fields(places.Replace(u["Service.ExecStart"][0]))[1:]...)
	await(t, p.errs, `"serving"`, p)
	if code := status(t, p.URL+"/readyz"); code != 200 {
		t.Errorf("/readyz answers %d", code)
	}
	for _, name := range []string{"fermata.db", "fermata.db.key"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestSystemd_UnitIsRestricted(t *testing.T) {
	u := unit(t, "systemd/fermata.service")
	for name, want := range map[string]string{
		"CapabilityBoundingSet": "", "NoNewPrivileges": "yes", "PrivateTmp": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateDevices": "yes",
		"RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "MemoryDenyWriteExecute": "yes", "SystemCallArchitectures": "native", "UMask": "0077", "StateDirectoryMode": "0700",
	} {
		if got := u["Service."+name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if user := u["Service.User"]; len(user) != 1 || user[0] == "root" {
		t.Errorf("it runs as %v", user)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not available")
		return
	}
	// 0 is fully restricted, 10 is unrestricted; 20 means 2.0.
	if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", "systemd/fermata.service").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
