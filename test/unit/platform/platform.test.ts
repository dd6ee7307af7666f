import { expect, test } from 'vitest'
import { copyEnvironment } from '../../../src/platform/io.js'
import { buildUri, connect } from '../../../src/platform/sqlite.js'
import { isLoopback } from '../../../src/platform/urls.js'

test('a connection cannot change the schema of a file past the checks of SQLite', () => {
  const db = connect(':memory:', { readOnly: false })
  db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY)')
  const change =
    "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = 'CREATE TABLE plants (id)'"
  expect(() => db.exec(change)).toThrow('table sqlite_master may not be modified')
  db.close()
})

test('the name of an environment variable has any case on Windows only', () => {
  const env = { plants_Store: 'a.db', Path: 'C:\\' }
  const upper = { PLANTS_STORE: 'a.db', PATH: 'C:\\' }
  expect(copyEnvironment(env, { isWindows: true })).toEqual(upper)
  expect(copyEnvironment(env, { isWindows: false })).toEqual(env)
})

test('the URI of a Windows share has its server in the path, because SQLite accepts no host', () => {
  const paths = ['\\\\nas\\garden\\50% #1.db', 'C:\\garden\\plants.db']
  expect(paths.map((path) => buildUri(path, 'mode=ro', { isWindows: true }))).toEqual([
    'file:////nas/garden/50%25 %231.db?mode=ro',
    'file:///C:/garden/plants.db?mode=ro',
  ])
})

test('a host is on this machine only if its whole name says so', () => {
  const own = ['localhost', 'LOCALHOST', '127.0.0.1', '127.255.0.9', '::1', '[::1]']
  const foreign = ['evil-localhost', 'localhost.example', '1127.0.0.1', '127.0.0.1.example', '::11']
  expect([...own, ...foreign].filter(isLoopback)).toEqual(own)
})
