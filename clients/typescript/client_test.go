package typescript

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestClient_FromNode builds the package, packs it as npm would publish it, installs it, and runs
// test/story.test.ts against the real program.
func TestClient_FromNode(t *testing.T) {
	n, s := open(t), demo(t)
	tsc := func(project string) { n.run(t, nil, "node", tools+"typescript/bin/tsc", "-p", project) }
	tsc("tsconfig.json")
	n.unpack(t, n.pack(t))
	tsc("test/tsconfig.json")
	out := n.run(t, []string{"FERMATA_URL=" + s.URL, "FERMATA_TOKEN=" + s.Token}, "node", "--test", "out/story.test.js")
	if !regexp.MustCompile(`(?m)^\S+ pass [1-9]`).MatchString(out) {
		t.Errorf("no test ran:\n%s", out)
	}
}

// pack packs the package, and returns the name of the archive.
func (n node) pack(t *testing.T) string {
	t.Helper()
	var packed []struct {
		Filename string
		Files    []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(n.run(t, nil, "npm", "pack", "--json", "--ignore-scripts")), &packed); err != nil || len(packed) != 1 {
		t.Fatal(err, packed)
	}
	var files []string
	for _, f := range packed[0].Files {
		files = append(files, f.Path)
	}
	for _, want := range []string{"package.json", "README.md", "dist/index.js", "dist/index.d.ts", "src/index.ts"} {
		if !slices.Contains(files, want) {
			t.Errorf("the package has no %s, only %v", want, files)
		}
	}
	for _, name := range files {
		if strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "node_modules/") {
			t.Errorf("the package should not have %s", name)
		}
	}
	return packed[0].Filename
}

// unpack extracts an archive where an import of the package finds it.
func (n node) unpack(t *testing.T, archive string) {
	t.Helper()
	place := filepath.Join(n.dir, "node_modules", "@fermata-go", "client")
	if err := os.MkdirAll(place, 0o700); err != nil {
		t.Fatal(err)
	}
	n.run(t, nil, "tar", "-xzf", archive, "-C", place, "--strip-components=1")
}

func TestPackage_HasNoRuntimeDependencies(t *testing.T) {
	var p struct {
		Type            string
		Engines         map[string]string
		Dependencies    map[string]string
		DevDependencies map[string]string
	}
	read(t, "package.json", &p)
	if len(p.Dependencies) > 0 || p.Type != "module" || p.Engines["node"] != ">=18" {
		t.Errorf("%+v", p)
	}
	for name, version := range p.DevDependencies {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
			t.Errorf("%s is not pinned: %s", name, version)
		}
	}
}

// A lock file that names a mirror would make all users depend on it.
func TestPackage_LockNamesNoHost(t *testing.T) {
	var lock struct {
		Packages map[string]struct{ Resolved, Integrity string }
	}
	read(t, "package-lock.json", &lock)
	if len(lock.Packages) < 3 {
		t.Fatal("the lock file is empty")
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" && !strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/") {
			t.Errorf("%s comes from %s", name, p.Resolved)
		}
		if name != "" && p.Integrity == "" {
			t.Errorf("%s has no digest", name)
		}
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}
