import { describe, expect, test } from 'vitest'
import { Flow } from '../../../../src/stores/http/queue.js'

/** A service in a time of its own: how many answers it gives in a millisecond when it has so many requests at once. */
class Simulation {
  readonly flow: Flow
  #now = 0
  #speed: (underWay: number) => number

  constructor(speed: (underWay: number) => number, ceiling = 256) {
    this.#speed = speed
    this.flow = new Flow(ceiling, 0)
  }

  /** Gives the limits that there were meanwhile. */
  run(milliseconds: number, isTooMuch = (_: number) => false): number[] {
    const limits: number[] = []
    const end = this.#now + milliseconds
    while (this.#now < end) {
      this.#now += 1 / this.#speed(this.flow.limit)
      if (isTooMuch(this.flow.limit)) this.flow.slow(this.#now)
      else this.flow.answered(this.#now)
      if (limits.at(-1) !== this.flow.limit) limits.push(this.flow.limit)
    }
    return limits
  }

  becomes(speed: (underWay: number) => number): void {
    this.#speed = speed
  }
}

/** Each request takes 10 ms, and so many are worked on at once. */
const workers = (count: number) => (underWay: number) => Math.min(underWay, count) / 10

describe('the number of requests at once', () => {
  test('begins with 4', () => {
    expect(new Flow(256, 0).limit).toBe(4)
  })

  test('never exceeds its ceiling', () => {
    expect(new Flow(1, 0).limit).toBe(1)
    expect(Math.max(...new Simulation(workers(1000), 100).run(10_000))).toBe(100)
  })

  test('doubles while the answers come faster', () => {
    const limits = new Simulation(workers(1000)).run(10_000)
    expect(limits).toEqual([4, 8, 16, 32, 64, 128, 256])
  })

  test('goes back when they do not', () => {
    const simulation = new Simulation(workers(16))
    expect(simulation.run(1500).slice(0, 5)).toEqual([4, 8, 16, 32, 16])
    const counts = Array.from({ length: 100 }, () => simulation.run(100).at(-1))
    expect(counts.filter((limit) => limit === 16).length).toBeGreaterThan(90)
  })

  test('rises when the service can do more than before', () => {
    const simulation = new Simulation(workers(8))
    simulation.run(60_000)
    expect(simulation.flow.limit).toBe(8)
    simulation.becomes(workers(100))
    simulation.run(10_000)
    expect(simulation.flow.limit).toBeGreaterThanOrEqual(100)
  })

  test('is halved each time that it was too much, down to 1', () => {
    const simulation = new Simulation(workers(1000))
    simulation.run(10_000)
    expect(simulation.run(1000, () => true)).toEqual([128, 64, 32, 16, 8, 4, 2, 1])
  })

  test('recovers from an outage to where it was, whatever was best before', () => {
    const simulation = new Simulation(workers(64))
    simulation.run(10_000)
    simulation.run(1000, () => true)
    expect(simulation.flow.limit).toBe(1)
    simulation.run(10_000)
    expect(simulation.flow.limit).toBeGreaterThanOrEqual(57)
  })

  test('recovers although the service has become slower for good', () => {
    const simulation = new Simulation(workers(64))
    simulation.run(10_000)
    simulation.run(1000, () => true)
    simulation.becomes((underWay) => workers(64)(underWay) / 10)
    simulation.run(100_000)
    expect(simulation.flow.limit).toBeGreaterThanOrEqual(57)
  })

  test('stays near what a service can take, and seldom asks for more', () => {
    let refusals = 0
    const simulation = new Simulation(workers(1000))
    const count = (limit: number) => {
      if (limit > 40) refusals += 1
      return limit > 40
    }
    simulation.run(10_000, count)
    refusals = 0
    const limits = simulation.run(60_000, count)
    expect(refusals).toBeLessThan(60)
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(15)
  })
})
