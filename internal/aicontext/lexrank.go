package aicontext

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

const (
	maxRanked     = 1500 // sentences compared with each other; of a longer document, an even sample
	minSimilarity = 0.1
	damping       = 0.85
	iterations    = 30
	relevance     = 0.6 // against 0.4 for being unlike what was chosen before
	notProse      = 0.5 // weight of headings and table rows
	leadWeight    = 2   // how much the first sentence of running text weighs beyond one far behind it
	leadSentences = 15  // sentences after which half of that is gone
)

// ranking compares the document's sentences with each other: LexRank (Erkan and Radev, 2004: the sentence most like the
// others). Repeated sentences and running heads take part once or not at all.
//
// Sums run in a fixed order, and float64() keeps the compiler from fusing a product into a sum, so that every machine
// gives the same order.
type ranking struct {
	d      *document
	chosen []int // indexes into d.sentences, at most maxRanked
	graph  [][]edge
	scores []float64
}

func rank(d *document) *ranking {
	r := &ranking{d: d, chosen: candidates(d)}
	r.graph = similarities(vectorize(d, r.chosen))
	r.scores = centrality(r.graph)
	return r
}

// fromStart is the order for a summary: an author says what a document is about at its start, so that counts more there.
// bench/quality measures by how much that helps.
func (r *ranking) fromStart() []int {
	weights := make([]float64, len(r.d.sentences))
	before := 0 // sentences of running text
	for i, s := range r.d.sentences {
		weights[i] = 1 + leadWeight/(1+float64(before)/leadSentences)
		if s.prose {
			before++
		}
	}
	return r.order(weights)
}

// order is the sentences that take part, best first, chosen one by one with maximal marginal relevance so that each adds
// something: indexes into d.sentences. Scores are multiplied by weights, if there are any.
func (r *ranking) order(weights []float64) []int {
	scores := slices.Clone(r.scores)
	for i, c := range r.chosen {
		if weights != nil {
			scores[i] *= weights[c]
		}
		if !r.d.sentences[c].prose {
			scores[i] *= notProse
		}
	}
	top := 0.0
	for _, s := range scores {
		top = max(top, s)
	}
	for i := range scores {
		scores[i] /= top
	}
	order := make([]int, 0, len(r.chosen))
	nearest := make([]float64, len(r.chosen)) // similarity to the most similar sentence already taken
	taken := make([]bool, len(r.chosen))
	for range r.chosen {
		best, bestValue := -1, math.Inf(-1)
		for i := range r.chosen {
			value := float64(relevance*scores[i]) - float64((1-relevance)*nearest[i])
			if !taken[i] && value > bestValue {
				best, bestValue = i, value
			}
		}
		taken[best] = true
		order = append(order, r.chosen[best])
		for _, e := range r.graph[best] {
			nearest[e.to] = max(nearest[e.to], float64(e.weight))
		}
	}
	return order
}

// candidates are the sentences that take part, in document order.
func candidates(d *document) []int {
	heads := runningHeads(d)
	seen := map[uint64]bool{}
	var prose, other []int
	for i, s := range d.sentences {
		key := digest(strings.ToLower(d.text(s)))
		if seen[key] || heads[i] {
			continue
		}
		seen[key] = true
		if s.prose {
			prose = append(prose, i)
		} else {
			other = append(other, i)
		}
	}
	prose = sample(prose, maxRanked)
	all := append(prose, sample(other, maxRanked-len(prose))...)
	slices.Sort(all)
	return all
}

// sample takes n of the indexes, evenly spread.
func sample(from []int, n int) []int {
	if len(from) <= n {
		return from
	}
	out := make([]int, n)
	for i := range out {
		out[i] = from[i*len(from)/n]
	}
	return out
}

// runningHeads finds first and last lines that stand, figures apart, on three pages or more.
func runningHeads(d *document) map[int]bool {
	count := map[uint64]int{}
	keys := map[int]uint64{}
	for i, s := range d.sentences {
		first := i == 0 || d.sentences[i-1].page != s.page
		last := i == len(d.sentences)-1 || d.sentences[i+1].page != s.page
		if (first || last) && !s.prose {
			keys[i] = digest(strings.Map(maskDigit, strings.ToLower(d.text(s))))
			count[keys[i]]++
		}
	}
	heads := map[int]bool{}
	for i, k := range keys {
		if count[k] >= 3 {
			heads[i] = true
		}
	}
	return heads
}

func maskDigit(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

func digest(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

type weighted struct {
	term   int32
	weight float64
}

// vectorize gives each sentence its tf·idf vector of length one, ordered by term. Terms in more than half of the
// sentences say nothing and are left out.
func vectorize(d *document, chosen []int) [][]weighted {
	ids := map[string]int32{}
	var seenIn []int // by term: how many sentences have it
	vectors := make([][]weighted, len(chosen))
	for i, c := range chosen {
		vectors[i] = terms(d.text(d.sentences[c]), ids)
		for _, w := range vectors[i] {
			if int(w.term) == len(seenIn) {
				seenIn = append(seenIn, 0)
			}
			seenIn[w.term]++
		}
	}
	n := float64(len(chosen))
	for i, v := range vectors {
		var square float64
		kept := v[:0]
		for _, w := range v {
			if len(chosen) >= 8 && seenIn[w.term]*2 > len(chosen) {
				continue
			}
			// Rounded, since machines differ in a logarithm's last bit.
			w.weight *= math.Round(1024*math.Log(1+n/float64(seenIn[w.term]))) / 1024
			square += float64(w.weight * w.weight)
			kept = append(kept, w)
		}
		length := math.Sqrt(square)
		for j := range kept {
			kept[j].weight /= length
		}
		vectors[i] = kept
	}
	return vectors
}

// terms counts the words of s, numbering new ones in order of appearance (so that an id is at most the highest yet
// plus one when the result is walked in order).
func terms(s string, ids map[string]int32) []weighted {
	count := map[int32]float64{}
	var out []weighted
	for it := words.FromString(strings.ToLower(s)); it.Next(); {
		w := it.Value()
		r, n := utf8.DecodeRuneInString(w)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) || len(w) > 64 || n == len(w) && !isWide(r) {
			continue
		}
		id, ok := ids[w]
		if !ok {
			id = int32(len(ids))
			ids[w] = id
		}
		if count[id]++; count[id] == 1 {
			out = append(out, weighted{term: id})
		}
	}
	for i := range out {
		out[i].weight = count[out[i].term]
	}
	slices.SortFunc(out, func(a, b weighted) int { return cmp.Compare(a.term, b.term) })
	return out
}

type edge struct {
	to     int32
	weight float32
}

// similarities links sentences whose cosine is at least minSimilarity, through an inverted index.
func similarities(vectors [][]weighted) [][]edge {
	type posting struct {
		sentence int32
		weight   float64
	}
	postings := map[int32][]posting{}
	graph := make([][]edge, len(vectors))
	sums := make([]float64, len(vectors))
	for i, v := range vectors {
		for _, w := range v {
			for _, p := range postings[w.term] {
				sums[p.sentence] += float64(w.weight * p.weight)
			}
			postings[w.term] = append(postings[w.term], posting{int32(i), w.weight})
		}
		for j, sum := range sums[:i] {
			if sum >= minSimilarity {
				graph[i] = append(graph[i], edge{int32(j), float32(sum)})
				graph[j] = append(graph[j], edge{int32(i), float32(sum)})
			}
		}
		clear(sums[:i])
	}
	return graph
}

// centrality is the stationary weight of each sentence for a reader who keeps jumping to a similar one.
func centrality(graph [][]edge) []float64 {
	degree := make([]float64, len(graph))
	for i, edges := range graph {
		for _, e := range edges {
			degree[i] += float64(e.weight)
		}
	}
	scores := make([]float64, len(graph))
	next := make([]float64, len(graph))
	for i := range scores {
		scores[i] = 1
	}
	for range iterations {
		for i, edges := range graph {
			var sum float64
			for _, e := range edges {
				sum += float64(scores[e.to] * float64(e.weight) / degree[e.to])
			}
			next[i] = (1 - damping) + float64(damping*sum)
		}
		scores, next = next, scores
	}
	return scores
}
