import { expect, onTestFinished } from 'vitest'
import { type Database, describeDatabase, findSharedServer, startOwnServer } from './database.js'
import { startServer } from './server.js'

/** Starts a primary whose commits wait for a standby, and that standby. */
export async function startServerWithStandby() {
  const primary = await startOwnServer({ access: ['local replication postgres trust'] })
  await primary.stop()
  const standby = await startServer(await findSharedServer(), { primary })
  onTestFinished(standby.remove)
  await primary.start()
  const onStandby = describeDatabase(standby, 'plants')
  const isSynchronous = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
  const waitForStandby = () =>
    expect.poll(() => primary.queryAsSuperuser(isSynchronous), { interval: 5 }).toHaveLength(1)
  // A server that has a synchronous standby shows it before commits wait for it. Commits that wait
  // for an absent standby continue to wait when the setting names another one.
  await waitForAbsentStandby(primary)
  await configure(primary, "synchronous_standby_names = '*'")
  await waitForStandby()
  return {
    primary,
    standby: {
      ...onStandby,
      stop: standby.stop,
      start: async () => {
        await standby.start()
        await waitForStandby()
      },
      promote: () => onStandby.queryAsSuperuser('SELECT pg_promote()'),
      /** Waits until readers of the standby see all commits, for which a commit does not wait. */
      catchUp: async () => {
        const [{ position } = {}] = await primary.queryAsSuperuser(
          'SELECT pg_current_wal_flush_lsn()::text AS position',
        )
        const missing = `SELECT FROM pg_last_wal_replay_lsn() AS lsn WHERE lsn < '${position}'`
        await expect.poll(() => onStandby.queryAsSuperuser(missing), { interval: 5 }).toEqual([])
      },
    },
  }
}

export async function configure({ queryAsSuperuser }: Database, setting: string): Promise<void> {
  await queryAsSuperuser(`ALTER SYSTEM SET ${setting}`)
  await queryAsSuperuser('SELECT pg_reload_conf()')
}

/**
 * Makes each commit wait for a standby that does not exist. A server shows the setting a moment
 * before its commits obey it, so this waits until one of them waits.
 */
export async function waitForAbsentStandby(database: Database): Promise<void> {
  await configure(database, "synchronous_standby_names = 'absent'")
  await expect.poll(() => cancelWaitingCommit(database), { interval: 5 }).toBe(true)
}

/**
 * Commits a message in the log of the server, which changes nothing else.
 *
 * @returns whether the commit had to wait for a standby, which was canceled then
 */
async function cancelWaitingCommit({ queryAsSuperuser }: Database): Promise<boolean> {
  const cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
  let isCommitted = false
  let hasWaited = false
  const commit = queryAsSuperuser("SELECT pg_logical_emit_message(true, 'test', '')").finally(
    () => {
      isCommitted = true
    },
  )
  const settle = async () => {
    hasWaited ||= (await queryAsSuperuser(cancel)).length > 0
    return isCommitted || hasWaited
  }
  await expect.poll(settle, { interval: 5 }).toBe(true)
  await commit
  return hasWaited
}
