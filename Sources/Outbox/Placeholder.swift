import SQLite
package let text = PackageResources._001_initial_sql
