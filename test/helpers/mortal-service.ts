import { remoteToken } from './remote-import.js'
import { addressOf, startService } from './service-process.js'

const env = { PLANTS_SERVE_TOKEN: remoteToken }

/** The program's service as a process that is killed again and again, and started again where it was. */
export class MortalService {
  readonly address: string
  readonly #folder: string
  readonly #place: string[]
  #service: ReturnType<typeof startService>
  #isOver = false

  private constructor(folder: string, place: string[], service: ReturnType<typeof startService>, address: string) {
    this.#folder = folder
    this.#place = place
    this.#service = service
    this.address = address
  }

  /** @param place the flags of `plants serve` that say where it listens */
  static async start(folder: string, place: string[]): Promise<MortalService> {
    const service = startService(place, folder, { env })
    const address = await addressOf(service)
    return new MortalService(
      folder,
      place.map((word) => (word === '0' ? new URL(address).port : word)),
      service,
      address,
    )
  }

  /** Dies so often, each time within so many milliseconds of its start, and lives on until `stop`. */
  async liveAndDie(deaths: number, longest: number): Promise<void> {
    this.#service.kill('SIGKILL')
    for (let death = 0; death < deaths && !this.#isOver; death += 1) {
      await this.#service
      this.#service = this.#again({ timeout: 1 + Math.random() * longest, killSignal: 'SIGKILL' })
    }
    await this.#service
    if (this.#isOver) return
    this.#service = this.#again({})
    await this.#service
  }

  stop(): void {
    this.#isOver = true
    this.#service.kill('SIGKILL')
  }

  #again(options: { timeout?: number; killSignal?: 'SIGKILL' }): ReturnType<typeof startService> {
    return startService(this.#place, this.#folder, { env, ...options })
  }
}
