import * as packaged from '@photostructure/sqlite'
import { describeDriver } from '../../src/platform/sqlite.js'

/**
 * Connects with the SQLite that the program has. Another one in the same process would see none of its locks, which
 * belong to the process, and would end them (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export const DatabaseSync =
  describeDriver().driver === 'node:sqlite' ? builtIn() : packaged.DatabaseSync

function builtIn(): typeof packaged.DatabaseSync {
  return (process.getBuiltinModule('node:sqlite') as typeof packaged).DatabaseSync
}
