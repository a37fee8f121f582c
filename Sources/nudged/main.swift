import Glibc
import Outbox

DatabaseFile.useOneThread()
exit(Program.run(arguments: Process.arguments(), environment: Process.environment()))
