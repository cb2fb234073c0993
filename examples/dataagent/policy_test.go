package main

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata"
)

const (
	allow  = fermata.Allow
	deny   = fermata.Deny
	person = fermata.AskPerson
)

func TestPolicy_OnlyReadsAreAllowedWithoutApproval(t *testing.T) {
	for text, want := range map[string]fermata.Verdict{
		"SELECT 1":                                  allow,
		"  select *\nfrom products ;":               allow,
		"/* all */ SELECT 1 -- of them":             allow,
		"-- DROP TABLE products\nSELECT 1":          allow,
		";; SELECT 1 ;;":                            allow,
		"SELECT 'a; DROP TABLE products'":           allow,
		"SELECT 'it''s; fine' AS \"a;b\", `c;d`":    allow,
		"SELECT 1 AS [a;b]":                         allow,
		"SELECT 1 /* ; DROP TABLE products; */":     allow,
		"SELECT replace(name, 'a', 'b') FROM t":     allow,
		"DROP TABLE products":                       person,
		"drop table products;":                      person,
		"DELETE FROM products":                      person,
		"UPDATE products SET price = 0":             person,
		"ALTER TABLE products DROP COLUMN price":    person,
		"INSERT INTO orders VALUES (3, 1, 1)":       person,
		"REPLACE INTO orders VALUES (1, 1, 1)":      person,
		"CREATE TABLE t AS SELECT * FROM products":  person,
		"/* SELECT */ DELETE FROM products":         person,
		"-- SELECT\rDELETE FROM products\nDELETE":   person,
		"WITH x AS (SELECT 1) DELETE FROM products": person,
		// it could be either, and the policy does not check
		"WITH x AS (SELECT 1) SELECT * FROM x":         person,
		"PRAGMA writable_schema = 1":                   person,
		"ATTACH 'other.db' AS other":                   person,
		"VACUUM":                                       person,
		"EXPLAIN SELECT 1":                             person,
		"SELECTX 1":                                    person,
		"SÉLECT 1":                                     person,
		"\ufeffSELECT 1":                               person,
		"(SELECT 1)":                                   person,
		"'SELECT' 1":                                   person,
		"SELECT 'no end":                               person,
		"SELECT \"no end; DROP TABLE products":         person,
		"make it cheaper":                              person,
		"SELECT 1; DROP TABLE products":                deny,
		"SELECT 1;DROP TABLE products;":                deny,
		"SELECT 1 /* */;/* */ DELETE FROM products":    deny,
		"SELECT 'a' ; -- b\nDELETE FROM products":      deny,
		"SELECT ''';' ; DELETE FROM products":          deny,
		"SELECT 1; 'no end":                            deny,
		"BEGIN; UPDATE products SET price = 0; COMMIT": deny,
		"BEGIN":                             deny,
		"commit":                            deny,
		"ROLLBACK":                          deny,
		"SAVEPOINT a":                       deny,
		"":                                  deny,
		" ; -- nothing\n;":                  deny,
		"DELETE FROM applied_keys":          deny,
		"SELECT * FROM \"APPLIED_KEYS\"":    deny,
		"SELECT 1 --; x\n; DELETE FROM a":   deny,
		"SELECT 1 /* no end ; DROP TABLE a": allow, // SQLite also treats the rest as a comment
	} {
		if got := classify(text).ruling(); got.Verdict != want || got.Rule == "" || got.Reason == "" {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
}

// The driver runs all statements of a text. So the policy and SQLite must agree on where one ends.
func TestProperty_AllowedActionsGiveTheSameResult(t *testing.T) {
	conn, err := newShop(t).writer.Conn(t.Context()) // a writable connection
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The second statement is harmless only where SQLite also treats it as part of a quotation or a
	// comment.
	piece := rapid.SampledFrom([]string{"a", "1", " ", "\n", "\r", ",", "'", "\"", "`", "[", "]", "--", "/*", "*/", "\\", "\x00", "é"})
	pieces := rapid.Map(rapid.SliceOfN(piece, 0, 6), func(list []string) string { return strings.Join(list, "") })
	rapid.Check(t, func(r *rapid.T) {
		text := "SELECT 1 " + pieces.Draw(r, "between") + ";DELETE FROM products " + pieces.Draw(r, "behind")
		if classify(text).ruling().Verdict != fermata.Allow {
			return
		}
		tx, err := conn.BeginTx(t.Context(), nil)
		if err != nil {
			r.Fatal(err)
		}
		defer tx.Rollback()  // so that a failure can be reproduced
		_, _ = tx.Exec(text) // it may be invalid
		var products int
		if err := tx.QueryRow("SELECT count(*) FROM products").Scan(&products); err != nil || products != 3 {
			r.Errorf("%q was allowed and left %d products, %v", text, products, err)
		}
	})
}
