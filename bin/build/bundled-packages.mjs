import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { application, describePackage, formatSbom, sbomName } from './sbom.mjs'

const root = join(import.meta.dirname, '../..')

/**
 * A plugin that writes two files next to the bundle, both from the list of the packages in it:
 * their licences (THIRD-PARTY.txt), and the bill of materials.
 */
export const bundledPackages = {
  name: 'bundled-packages',
  generateBundle(_, bundle) {
    const folders = listPackageFolders(listRenderedModules(bundle))
    // The bundler also loads modules of which no code is left in the bundle.
    const loadedFolders = listPackageFolders([...this.getModuleIds()])
    const allFolders = [...new Set([...folders, ...loadedFolders])]
    const introduction = 'plant-store contains code of these packages.\n'
    const source = [introduction, ...formatNotices(folders)].join('\n')
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source })
    const components = folders.map((folder) => describePackage(readManifest(folder)))
    const sbom = formatSbom(components, listDependencies(folders, allFolders))
    this.emitFile({ type: 'asset', fileName: sbomName, source: sbom })
  },
}

/** The bundler adds this module of its own, with helpers such as the one that loads CommonJS. */
const bundlerRuntime = { id: '\0rolldown/runtime.js', folder: join(root, 'node_modules/rolldown') }

/** Lists the modules of which code is in a bundle. */
function listRenderedModules(bundle) {
  const chunks = Object.values(bundle).filter(({ type }) => type === 'chunk')
  const modules = chunks.flatMap((chunk) => Object.entries(chunk.modules))
  return modules.filter(([, { renderedLength }]) => renderedLength > 0).map(([id]) => id)
}

/** Lists the folders of the packages that modules belong to, each once. */
function listPackageFolders(ids) {
  return [...new Set(ids.flatMap((id) => findPackageFolder(id) ?? []))]
}

/** @returns undefined for a module of the program itself */
function findPackageFolder(id) {
  return id === bundlerRuntime.id ? bundlerRuntime.folder : packageFolder.exec(id)?.[0]
}

const packageFolder = /.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/

/**
 * Lists the bundled packages on which the program and each bundled package depend. A package that
 * only exports other packages, such as @inquirer/prompts, is loaded, but leaves no code in the
 * bundle. Its dependencies count as dependencies of the package that imports it.
 */
function listDependencies(bundledFolders, loadedFolders) {
  /** Finds the packages of these names, or instead of one without code, what it depends on. */
  const findBundled = (from, names) =>
    names
      .map((name) => resolveFolder(from, name))
      .filter((folder) => loadedFolders.includes(folder))
      .flatMap((folder) =>
        bundledFolders.includes(folder)
          ? [folder]
          : findBundled(folder, readManifest(folder).dependencies),
      )
  const findRefs = (from, names) => findBundled(from, names).map(findRef)
  const { dependencies, devDependencies } = readJson(root)
  const dependencyNames = Object.keys({ ...dependencies, ...devDependencies })
  const packageEntries = bundledFolders.map((folder) => {
    const dependsOn = findRefs(folder, readManifest(folder).dependencies)
    return { ref: findRef(folder), dependsOn }
  })
  return [
    { ref: application['bom-ref'], dependsOn: findRefs(root, dependencyNames) },
    ...packageEntries,
  ]
}

function findRef(folder) {
  return describePackage(readManifest(folder))['bom-ref']
}

/** Finds a package as Node.js does: in the nearest node_modules, from a folder upwards. */
function resolveFolder(from, name) {
  const folder = join(from, 'node_modules', name)
  if (existsSync(folder)) return folder
  return dirname(from) === from ? undefined : resolveFolder(dirname(from), name)
}

function readManifest(folder) {
  const { name, version, license, ...dependencyLists } = readJson(folder)
  if (typeof license !== 'string')
    throw new Error(`${name} ${version} names no licence in its package.json`)
  const allDependencies = {
    ...dependencyLists.dependencies,
    ...dependencyLists.optionalDependencies,
    ...dependencyLists.peerDependencies,
  }
  return { name, version, license, dependencies: Object.keys(allDependencies) }
}

function readJson(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

/**
 * Formats the licences of packages. Packages whose licences have the same text share a section,
 * which begins with a line for each of them.
 */
function formatNotices(folders) {
  const titlesByText = new Map()
  for (const folder of folders) {
    const { name, version, license } = readManifest(folder)
    const texts = readLicences(folder, name).map((text) => text.trim())
    if (texts.length === 0)
      texts.push(
        `The package ${name} carries no text of its licence, which it names as ${license}.`,
      )
    const text = texts.join('\n\n')
    // The same version of a package may be in two folders.
    const titles = titlesByText.get(text) ?? new Set()
    titlesByText.set(text, titles.add(`${name} ${version} (${license})`))
  }
  const sections = Array.from(titlesByText, ([text, titles]) =>
    [rule, ...[...titles].toSorted(), '', text, ''].join('\n'),
  )
  return sections.toSorted()
}

const rule = '-'.repeat(80)

/** The files here with licences that packages have in their repositories, but do not publish. */
const licencesByPackage = new Map([['saxes', 'saxes-licence.txt']])

/** Reads the files of a licence, or else the section "License" of a README, if it has the text. */
function readLicences(folder, name) {
  const read = (file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const names = readdirSync(folder)
  const files = names.filter((file) =>
    /^[^.]*(licen[cs]e|copying|notice)[^.]*(\.\w+)?$/i.test(file),
  )
  if (files.length > 0) return files.map(read)
  const storedLicence = licencesByPackage.get(name)
  if (storedLicence !== undefined)
    return [readFileSync(join(import.meta.dirname, storedLicence), 'utf8')]
  const readmes = names.filter((file) => /^readme/i.test(file)).map(read)
  return readmes
    .flatMap((readme) => readme.split(/^#+ */m))
    .filter((section) => /^licen[cs]e\b.*(permission|redistribution)/is.test(section))
    .map((section) => section.replace(/^.*/, ''))
}
