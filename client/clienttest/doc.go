// Package clienttest holds an in-process stand-in for the service, for tests of programs that use package client. It
// speaks the contract over real HTTP, keeps everything in memory, derives nothing from what it is sent, and fails on
// demand. It is no substitute for the service: its gates pass because a test says so.
package clienttest
