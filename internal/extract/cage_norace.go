//go:build !race

package extract

// memoryLimited says that a worker of this build can live under a limit of its address space.
const memoryLimited = true
