//! Decides under which number a call, an attempt or a request is known while it lasts.
//! It exists so that an event for something that has ended finds nothing, instead of its successor.
//! It refuses to give one number twice.

/// Things that come and go.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

/// The number of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    place: u32,
    turn: u32,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, thing: T) -> Id {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let (turn, held) = &mut self.places[place as usize];
        *held = Some(thing);
        Id { place, turn: *turn }
    }

    pub(crate) fn get(&mut self, id: Id) -> Option<&mut T> {
        match self.places.get_mut(id.place as usize) {
            Some((turn, Some(thing))) if *turn == id.turn => Some(thing),
            Some(_) | None => None,
        }
    }

    pub(crate) fn take(&mut self, id: Id) -> Option<T> {
        let (turn, held) = self.places.get_mut(id.place as usize)?;
        if *turn != id.turn {
            return None;
        }
        let thing = held.take()?;
        *turn = turn.wrapping_add(1);
        self.free.push(id.place);
        Some(thing)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_number_does_not_find_who_has_the_place_now() {
        let mut slab = Slab::new();
        let old = slab.add("old");
        assert_eq!(slab.take(old), Some("old"));
        let new = slab.add("new");
        assert_eq!(slab.get(old), None);
        assert_eq!((slab.take(old), slab.len()), (None, 1));
        assert_eq!(slab.get(new), Some(&mut "new"));
    }
}
