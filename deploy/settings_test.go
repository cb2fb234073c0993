package deploy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/config"
)

// loaded reads a configuration as the server would. An unknown key or variable fails the test.
func loaded(t *testing.T, file string, variables map[string]string) *config.Config {
	t.Helper()
	var environ []string
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	slices.Sort(environ)
	c, err := config.Load(config.Source{File: file, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range c.Warnings {
		t.Error(warning)
	}
	return c
}

// The documented sign-in settings are valid.
func TestDocs_SignInIsConfigured(t *testing.T) {
	page, err := os.ReadFile("../docs/auth.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("there are none")
	}
	dir := t.TempDir()
	write(t, dir, "oidc", "hush\n")
	c := loaded(t, write(t, dir, "fermata.yaml", strings.ReplaceAll(block[1], "/run/secrets/fermata", dir)), nil)
	if o := c.Auth.OIDC; o.Issuer == "" || o.ClientSecret.Reveal() != "hush" || !slices.Contains(o.Roles["platform"], "approver") {
		t.Errorf("%+v", o)
	}
}
