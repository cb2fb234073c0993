package config

import (
	"fmt"
	"strings"
	"testing"
)

// The effective configuration has every key, and no secret.
func TestEffective_MasksSecrets(t *testing.T) {
	c := Default()
	c.Store.URL = "postgres://ann:s3cret@db/fermata"
	c.Webhooks.Secrets = []Secret{"s3cret-1", "s3cret-2"}
	c.Auth.OIDC.ClientSecret, c.Auth.OIDC.Issuer = "s3cret", "https://ann:s3cret@idp.example"
	c.Channels.Slack.BotToken = "s3cret"
	list := c.Effective()
	if len(list) != len(Describe()) {
		t.Errorf("%d keys of %d", len(list), len(Describe()))
	}
	text := fmt.Sprintf("%+v", list)
	if strings.Contains(text, "s3cret") || !strings.Contains(text, "{Key:store.url Value:(secret) From:}") || !strings.Contains(text, "https://ann:xxxxx@idp.example") {
		t.Error(text)
	}
}
