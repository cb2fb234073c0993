package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestDataagent(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example:    example,
		Answers:    []consoletest.Answer{{To: "UPDATE products", Lines: []string{"y"}}},
		Refusals:   []consoletest.Answer{{To: "UPDATE products", Lines: []string{"n not before Christmas"}}},
		Reason:     "not before Christmas",
		Effects:    raised,
		ModelCalls: 4,
	})
}

// raised returns how often the prices were raised, according to the database.
func raised(data string) (done, again int, err error) {
	shop, err := openShop(filepath.Join(data, "shop.db"))
	if err != nil {
		return 0, 0, err
	}
	defer shop.Close()
	var price int
	if err := shop.reader.QueryRow("SELECT price FROM products WHERE name = 'desk lamp'").Scan(&price); err != nil {
		return 0, 0, err
	}
	for ; price > 3000; price = price * 100 / 110 {
		done++
	}
	err = shop.reader.QueryRow("SELECT coalesce(sum(calls - 1), 0) FROM " + keysTable).Scan(&again)
	return done, again, err
}

func newShop(t *testing.T) *Shop {
	t.Helper()
	shop, err := openShop(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shop.Close() })
	return shop
}

func TestShop_AReadCannotWriteWhateverThePolicyTookItFor(t *testing.T) {
	shop := newShop(t)
	if text, err := shop.Read(t.Context(), "DELETE FROM products RETURNING id"); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := shop.Read(t.Context(), "SELECT count(*) AS n FROM products"); text != "n\n3" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestShop_AKeyChangesThingsOnce(t *testing.T) {
	shop := newShop(t)
	for range 2 {
		if text, err := shop.Change(t.Context(), "UPDATE products SET price = price + 1", "k"); text != "Done. Rows changed: 3." || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if text, err := shop.Read(t.Context(), "SELECT price FROM products WHERE id = 1"); text != "price\n3001" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestShop_FailedStatementIsRolledBackAndReportedToTheModel(t *testing.T) {
	shop := newShop(t)
	for range 2 { // a failed call does not use up its key
		_, err := shop.Change(t.Context(), "UPDATE products SET cost = 1", "k")
		if err == nil || !strings.Contains(err.Error(), "no such column: cost") {
			t.Errorf("got %v", err)
		}
	}
	if text, err := shop.Read(t.Context(), "SELECT count(*) AS n FROM "+keysTable); text != "n\n0" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestShop_ATableThatWasDroppedStaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	for i := range 2 {
		shop, err := openShop(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shop.Change(t.Context(), "DROP TABLE orders", string(rune('a'+i))); (err == nil) != (i == 0) {
			t.Errorf("drop number %d: %v", i+1, err)
		}
		if err := shop.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
