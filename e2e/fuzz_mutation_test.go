package e2e

import (
	"bytes"
	"fmt"
	"strings"
)

// junk is a value that most schemas refuse.
func (f *fuzzer) junk() any {
	switch f.IntN(16) {
	case 0:
		return nil
	case 1:
		return f.chance(50)
	case 2:
		return jsonRaw(pick(f, []string{"1e400", "-1e400", "1e-400", "9223372036854775808", "-9223372036854775809", strings.Repeat("9", 500), "-0", "0.1", "1.0", "1E2"}))
	case 3:
		return pick(f, []int64{0, -1, 1, 1 << 31, 1 << 53, 1<<63 - 1, -1 << 63})
	case 4:
		return ""
	case 5:
		return f.mark
	case 6:
		return f.mark + strings.Repeat("x", 300+f.IntN(70_000))
	case 7:
		return jsonRaw(pick(f, []string{`"\ud800"`, "\"\xff\xfe\"", `"\u0000"`, "\"\x00\"", `"\x"`, "\"" + f.mark + "\xc3\"", "\"\xed\xa0\x80\"", `'` + f.mark + `'`, "NaN", "undefined"}))
	case 8:
		depth := 1 + f.IntN(20_000)
		return jsonRaw(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	case 9:
		depth := 1 + f.IntN(2_000)
		return jsonRaw(strings.Repeat(`{"a":`, depth) + `"` + f.mark + `"` + strings.Repeat("}", depth))
	case 10:
		return []any{}
	case 11:
		return jsonObject{}
	case 12:
		return []any{f.mark, nil, jsonObject{{f.mark, f.mark}}}
	case 13:
		return jsonObject{{f.mark, f.mark}}
	case 14:
		return pick(f, []string{"../../etc/passwd", "a/b", "a\\b", "C:\\x", "..", ".", " ", "\t", "\r\nX-Injected: 1", "\u202e" + f.mark, "%00", "'; DROP TABLE uploads; --",
			"<script>" + f.mark, "${jndi:ldap://" + f.mark + "}", "{{" + f.mark + "}}", "0", "true", "null", "-1", "1e3", "\u0000", "\ufeff", "\U0001f600"})
	}
	return pick(f, []string{"2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01", "a@", "@b", "a@b@c", "http://", "javascript:" + f.mark,
		strings.Repeat("A", 64), strings.Repeat("g", 64), "verified", "not_evaluated", "admin"})
}

// slot is a place in a tree where something can be changed.
type slot struct {
	set    func(any)
	object *jsonObject // where the value is one
}

func slots(v any, set func(any)) (found []slot) {
	switch v := v.(type) {
	case jsonObject:
		found = append(found, slot{set, &v})
		for i := range v {
			found = append(found, slots(v[i].value, func(to any) { v[i].value = to })...)
		}
	case []any:
		found = append(found, slot{set, nil})
		for i := range v {
			found = append(found, slots(v[i], func(to any) { v[i] = to })...)
		}
	default:
		found = append(found, slot{set, nil})
	}
	return found
}

// mutated is the tree with one thing wrong, or unusual.
func (f *fuzzer) mutated(tree any) any {
	at := pick(f, slots(tree, func(to any) { tree = to }))
	o := at.object
	if o == nil || len(*o) == 0 || f.chance(30) {
		at.set(f.junk())
		return tree
	}
	i := f.IntN(len(*o))
	m := (*o)[i]
	switch f.IntN(6) {
	case 0: // missing
		at.set(append(append(jsonObject{}, (*o)[:i]...), (*o)[i+1:]...))
	case 1: // twice
		at.set(append(append(jsonObject{}, *o...), pick(f, []jsonMember{m, {m.name, f.junk()}})))
	case 2: // unknown
		name := pick(f, []string{f.mark, "", "__proto__", "verified", "ranking", "evaluation_status", "certified", "_", "$ref", "\u0000", strings.Repeat("n", 3000)})
		at.set(append(append(jsonObject{}, *o...), jsonMember{name, f.junk()}))
	case 3: // another case
		renamed := append(jsonObject{}, *o...)
		renamed[i].name = pick(f, []string{strings.ToUpper(m.name), strings.ReplaceAll(m.name, "_", ""), m.name + " ", m.name + f.mark})
		at.set(renamed)
	default:
		changed := append(jsonObject{}, *o...)
		changed[i].value = f.junk()
		at.set(changed)
	}
	return tree
}

// damaged is a body that is broken as bytes.
func (f *fuzzer) damaged(b []byte) []byte {
	switch f.IntN(9) {
	case 0:
		return b[:f.IntN(len(b)+1)]
	case 1:
		return append(bytes.Clone(b), pick(f, []string{"x", "{}", ",", "]", "\x00", " \n"})...)
	case 2:
		return append([]byte("\xef\xbb\xbf"), b...)
	case 3:
		return []byte(pick(f, []string{" ", "\n", "null", "true", "0", `""`, "[]", "{", "}", "[[[[", `{"`, `{"":`, "\x00", "\xff", f.mark}))
	case 4:
		return encode(f.junk())
	case 5:
		return bytes.Repeat([]byte("["), 1+f.IntN(50_000))
	case 6:
		return []byte(`{"` + f.mark + `":"` + strings.Repeat("x", 1<<21) + `"}`) // past every limit
	case 7:
		changed := bytes.Clone(b)
		for range 1 + f.IntN(4) {
			if len(changed) > 0 {
				changed[f.IntN(len(changed))] = byte(f.IntN(256))
			}
		}
		return changed
	}
	return nil
}

// segment is a path parameter that is off.
func (f *fuzzer) segment() string {
	return pick(f, []string{"", ".", "..", f.mark, f.mark + "/x", "a//b", "\xff\xfe", "\x00", "%2e%2e", "%", strings.Repeat("x", 129), f.mark + strings.Repeat("y", 5000),
		" ", "\U0001f600", "\u202e", "-1", "0", "1.5", "9223372036854775808", "1e1", "null", "' OR 1=1", "upl_", missing, "*", "{org_id}", "a?b", "a#b", "a;b", "complete"})
}

// query is a query that is off, made from one that is not.
func (f *fuzzer) query(valid string) string {
	name := f.mark
	if before, _, found := strings.Cut(valid, "="); found {
		name = before
	}
	return pick(f, []string{"", f.mark, f.mark + "=" + f.mark, f.mark + "=1&" + f.mark + "=2", valid + "&" + valid, valid + "&" + name + "=" + f.mark, name + "=" + f.mark, name + "=", name, name + "=%zz", name + "=%ff", name + "=%00",
		name + "=" + strings.Repeat("z", 9000), name + "=true;x=1", name + "[]=1", name + "=-1", name + "=0", name + "=101", name + "=1e2", name + "=9223372036854775808", "&&&", "=", "%=1", strings.ToUpper(name) + "=1"})
}

// heading is a header that is off: of those that the service reads, or larger than it takes.
func (f *fuzzer) heading() (name, value string) {
	name = pick(f, []string{"Idempotency-Key", "Idempotency-Key", "Content-Type", "Content-Encoding", "Content-Digest", "If-None-Match", "Traceparent", "Accept", "X-Forwarded-For",
		"Origin", "Cookie", "Range", "Accept-Encoding", "X-Http-Method-Override", "Tracestate", "Forwarded", "Prefer", "X-Request-Id", "X-Large"})
	switch name {
	case "Prefer": // never one that holds the answer
		return name, pick(f, []string{"wait=0", "wait=-1", "wait", "wait=" + f.mark, "respond-async", ",;=", "wait=1e9"})
	case "X-Large":
		return name, f.mark + strings.Repeat("h", pick(f, []int{10_000, 33_000, 100_000}))
	case "Content-Type":
		return name, pick(f, []string{f.mark, "text/plain", "application/json; charset=utf-16", "application/json;charset=UTF-8", "APPLICATION/JSON", "application/json, text/plain", "application/json; charset=" + f.mark,
			"multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/octet-stream", "application/xml", "/", ";", "application/problem+json"})
	case "Content-Encoding":
		return name, pick(f, []string{"gzip", "identity", "br, gzip", f.mark})
	case "Content-Digest":
		return name, pick(f, []string{"sha-256=:AAAA:", "sha-256=" + f.mark, "sha-512=:" + f.mark + ":", f.mark, "sha-256=:" + strings.Repeat("A", 43) + "=:", ",,,"})
	case "Idempotency-Key":
		return name, pick(f, []string{"", "short", strings.Repeat("k", 128), strings.Repeat("k", 129), "with space in it", "kéy-of-the-fuzzer", f.mark, f.mark + "\xff\xff", "a-key-of-many-requests", "a-key-of-many-requests"})
	case "Traceparent":
		return name, pick(f, []string{f.mark, "00-00000000000000000000000000000000-0000000000000000-00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "ff-" + f.mark, strings.Repeat("0", 55)})
	}
	return name, pick(f, []string{f.mark, "", "*", "0", "\"" + f.mark + "\"", "W/\"1.1\"", "bytes=0-1", "127.0.0.1", strings.Repeat(",", 500), fmt.Sprintf("\xff%s", f.mark)})
}
