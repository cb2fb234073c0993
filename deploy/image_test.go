package deploy

import (
	"debug/elf"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// The final image has no C library, so a dynamically linked program would not start.
func TestImage_ProgramsAreStatic(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the image is for Linux")
	}
	for _, name := range []string{"fermata", "healthcheck"} {
		file, err := elf.Open(program(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for _, part := range file.Progs {
			if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is dynamically linked (%s)", name, part.Type)
			}
		}
	}
	if out := call(t, "version"); !strings.HasPrefix(out, "fermata ") {
		t.Errorf("version prints %q", out)
	}
}

func TestImage_Healthcheck(t *testing.T) {
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	check := func() error {
		return exec.CommandContext(t.Context(), program(t, "healthcheck"), server.URL+"/readyz").Run()
	}
	if err := check(); err != nil {
		t.Error("a ready server:", err)
	}
	down.Store(true)
	if check() == nil {
		t.Error("an unready server passes")
	}
	server.Close()
	if check() == nil {
		t.Error("a missing server passes")
	}
}

// instructions returns the lines of the Dockerfile that begin with a word, without it.
func instructions(t *testing.T, word string) (all []string) {
	t.Helper()
	data, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "\\\n", " ")
	for _, match := range regexp.MustCompile(`(?m)^`+word+` (.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// imageEnv returns the environment of programs in the image.
func imageEnv(t *testing.T) map[string]string {
	t.Helper()
	variables := make(map[string]string)
	for _, match := range regexp.MustCompile(`(FERMATA_\w+)=(\S+)`).FindAllStringSubmatch(strings.Join(instructions(t, "ENV"), " "), -1) {
		variables[match[1]] = match[2]
	}
	return variables
}

func TestImage_DockerfileMatchesTheProgram(t *testing.T) {
	lines := func(instruction string) []string { return instructions(t, instruction) }
	from := lines("FROM")
	if len(from) != 2 || !strings.HasPrefix(from[0], "golang:"+goVersion(t)+"-") {
		t.Errorf("it builds with %v; go.mod has %s", from, goVersion(t))
	}
	for _, image := range from {
		if !strings.Contains(image, ":") || strings.Contains(image, ":latest") {
			t.Errorf("%s is not pinned", image)
		}
	}
	if user := lines("USER"); len(user) != 1 || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user[0]) {
		t.Errorf("the user is %v, and should be a non-zero number: Kubernetes cannot tell whether a name is root", user)
	}
	// Other variables would override the user's configuration file.
	if env := imageEnv(t); len(env) != 1 || env["FERMATA_CONFIG"] != "/etc/fermata/fermata.yaml" || !slices.Contains(lines("COPY"), "--from=build /out/fermata.yaml "+env["FERMATA_CONFIG"]) {
		t.Errorf("the environment is %v, and copied are %q", env, lines("COPY"))
	}
	settings := loaded(t, filepath.Join(filepath.Dir(program(t, "fermata")), "fermata.yaml"), nil)
	if volume := lines("VOLUME"); len(volume) != 1 || !strings.HasPrefix(settings.Store.URL.Reveal(), "sqlite:"+volume[0]+"/") {
		t.Errorf("the store is %s, the volume %v", settings.Store.URL.Reveal(), volume)
	}
	healthcheck := lines("HEALTHCHECK")
	if len(healthcheck) != 1 || !strings.Contains(healthcheck[0], settings.Metrics.Addr+"/readyz") {
		t.Errorf("it checks %v; readiness is served at %s", healthcheck, settings.Metrics.Addr)
	}
	if expose := lines("EXPOSE"); len(expose) != 1 || expose[0] != strings.TrimPrefix(settings.Listen.Addr, ":")+" "+strings.TrimPrefix(settings.Metrics.Addr, ":") {
		t.Errorf("it exposes %v", expose)
	}
}

// goVersion returns the version of Go without the patch level.
func goVersion(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
}
