// The parts of Linux that the Glibc module leaves out, and a fixed-arity form of the variadic calls.
#pragma once
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
