package cli

import (
	"github.com/fermata-go/fermata/client"
)

// Remote is the server that a command calls.
type Remote struct {
	URL   string `name:"url" help:"The URL of the server." default:"http://127.0.0.1:8080" env:"FERMATA_URL"`
	Token string `help:"Your API key." env:"FERMATA_TOKEN" placeholder:"KEY"`
}

// Client returns a client of the server.
func (r Remote) Client() (*client.Client, error) {
	if r.Token == "" {
		return nil, errNoToken
	}
	c, err := client.New(r.URL, r.Token)
	if err != nil {
		return nil, InvalidUsage(err)
	}
	return c, nil
}
