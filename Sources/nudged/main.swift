import Glibc

exit(Program.run(arguments: Process.arguments(), environment: Process.environment()))
