package deploy

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/app/config"
)

// loaded reads settings as the server would. A key or a variable that it does not know fails the test.
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
