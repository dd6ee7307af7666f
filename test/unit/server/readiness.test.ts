import { expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { Readiness } from '../../../src/server/readiness.js'
import { createClock } from '../../helpers/sandbox/clock.js'
import { createGate } from '../../helpers/scripted-server/service.js'

type Options = Partial<ConstructorParameters<typeof Readiness>[0]>

/** The readiness of a service, and what its log has. */
function watchReadiness(options: Options = {}) {
  const lines: string[] = []
  const readiness = new Readiness({
    checkStore: async () => undefined,
    isDraining: () => false,
    findOutage: () => undefined,
    log: {
      info: (message) => void lines.push(`info: ${message}`),
      warn: (message) => void lines.push(`warn: ${message}`),
      error: (error) => void lines.push(`error: ${error}`),
    },
    ...options,
  })
  return { lines, explain: () => readiness.explain() }
}

const outage = new PlantsError('unavailable', 'Could not reach db.example.com:5432')

test('the reason of /ready is the message of the store, and the log has it once', async () => {
  let failure: PlantsError | undefined
  const checkStore = async () => {
    if (failure) throw failure
  }
  const { explain, lines } = watchReadiness({ checkStore })
  expect(await explain()).toBeUndefined()
  failure = outage
  expect([await explain(), await explain()]).toEqual([outage.message, outage.message])
  failure = undefined
  expect([await explain(), await explain()]).toEqual([undefined, undefined])
  expect(lines).toEqual([
    `warn: The service is not ready: ${outage.message}`,
    'info: The service is ready again',
  ])
})

test('the reason of /ready shows neither the user of a rejected login nor an internal error', async () => {
  const login = new PlantsError('unauthorized', 'It rejected the login of SECRET')
  const later = new PlantsError('accessDenied', login.message, { cause: login })
  for (const failure of [
    login,
    later,
    new PlantsError('internalError', 'SECRET'),
    new Error('SECRET'),
  ]) {
    const { explain } = watchReadiness({ checkStore: () => Promise.reject(failure) })
    expect(await explain()).toMatch(/^The (store rejected the login|check of the store failed)/)
    expect(await explain()).not.toContain('SECRET')
  }
})

test('concurrent probes share a check, and wait a second for it', async () => {
  const { timeOut } = createClock({ isStill: true })
  const store = createGate()
  const { explain } = watchReadiness({ checkStore: () => store.wait() })
  const early = [explain(), explain()]
  timeOut(1000)
  const late = 'The store did not answer within a second'
  expect(await Promise.all(early)).toEqual([late, late])
  const next = explain()
  expect(store.waiting).toBe(1)
  store.open()
  expect(await next).toBeUndefined()
  expect([await explain(), store.waiting]).toEqual([undefined, 2])
})

test('a store that does not answer is reported as unreachable if an outage is known', async () => {
  const { timeOut } = createClock({ isStill: true })
  const { explain } = watchReadiness({
    checkStore: () => createGate().wait(),
    findOutage: () => outage,
  })
  const reason = explain()
  timeOut(1000)
  expect(await reason).toBe(outage.message)
})

test('a service that drains is not ready, also if that begins during the check', async () => {
  let isDraining = false
  const store = createGate()
  const { explain, lines } = watchReadiness({
    checkStore: () => store.wait(),
    isDraining: () => isDraining,
  })
  const reason = explain()
  isDraining = true
  store.open()
  const draining = 'The service is draining'
  expect([await reason, await explain(), lines]).toEqual([draining, draining, []])
})

test('a reason that was found at the start is permanent, and is not logged again', async () => {
  const permanentReason = 'The store does not allow this user to delete plants'
  const { explain, lines } = watchReadiness({ permanentReason })
  expect([await explain(), lines]).toEqual([permanentReason, []])
})
